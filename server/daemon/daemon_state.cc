// The daemon's own data: its database, data sets, fetched data, and jobs' folders.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/daemon/begin_anew.h"
#include "server/daemon/crash_folder.h"
#include "server/daemon/daemon.h"
#include "server/daemon/restoration.h"
#include "server/fetch/curl_transport.h"
#include "server/fetch/proxies.h"
#include "server/jobs/boot_clock.h"
#include "server/scheduler/available_memory.h"
#include "server/store/records.h"
#include "server/store/reserved_room.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// Bounds of the memory for reading one data set. All readings together get half of the memory, but at least
// kLeastReadingMemory.
constexpr int64_t kLeastReadingMemory = int64_t{256} << 20;
constexpr int64_t kMostReadingMemory = int64_t{8} << 30;

}  // namespace

SandboxOptions Daemon::SandboxFor(const DaemonOptions& options) const {
  SandboxOptions sandbox;
  sandbox.mode = ParseSandboxMode(options.worker_sandbox).value_or(SandboxMode::kBestEffort);
  sandbox.readable = options.data_folders;
  for (const std::string& folder :
       {state_folder_->PublicFolder(), state_folder_->CacheFolder(), state_folder_->UploadsFolder()}) {
    sandbox.readable.push_back(folder);
  }
  return sandbox;
}

absl::Status Daemon::OpenState(const DaemonOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(state_folder_, StateFolder::Lock(options.state_folder));
  if (!options.shared_folder.empty()) {
    TANDEM_ASSIGN_OR_RETURN(shared_folder_, state_folder_->ShareThrough(options.shared_folder));
  }
  NoteCrashReports(state_folder_->path());
  // A killed daemon leaves its address file.
  unlink(AddressFile().c_str());
  TANDEM_ASSIGN_OR_RETURN(audit_,
                          AuditLog::Open({.folder = state_folder_->path()}, Env::Real(), Clock::Real()));
  const std::string database = state_folder_->DatabasePath();
  // A start writes a little. On a full disk a daemon must still start, so that somebody can delete jobs.
  ReservedRoom(ReservedRoom::PathBeside(database)).GiveUpIfFull(/*was_full=*/false);
  backups_ = std::make_unique<Backups>(
      Backups::Options{.folder = state_folder_->BackupsFolder(),
                       .database_path = database,
                       .kept = options.backups_kept,
                       .on_damage = [this](const absl::Status& damage) { OnDamage(damage); }});
  TANDEM_RETURN_IF_ERROR(PrepareDatabase(database, backups_.get(),
                                         NewestAttemptIn(state_folder_->JobsFolder()),
                                         RemainsOf(state_folder_->path()), Clock::Real())
                             .status());
  TANDEM_ASSIGN_OR_RETURN(restoration_, LastRestoration(database));
  Store::Options store_options;
  store_options.on_damage = [this](const absl::Status& damage) { OnDamage(damage); };
  store_options.on_lost = [this](const absl::Status& loss, Connection* connection) {
    return OnLost(loss, connection);
  };
  TANDEM_ASSIGN_OR_RETURN(store_, Store::Open(database, store_options));
  monitoring_.Observe(store_.get());
  tokens_ = std::make_unique<TokenRegistry>(store_.get(), Clock::Real());
  TANDEM_RETURN_IF_ERROR(tokens_->Load());
  events_ = std::make_unique<EventHub>(store_.get());
  jobs_ =
      std::make_unique<JobMachine>(store_.get(), events_.get(), Clock::Real(), state_folder_->JobsFolder());
  return absl::OkStatus();
}

void Daemon::OnDamage(const absl::Status& damage) {
  if (is_damaged_.exchange(true)) return;
  SuspectDatabase(state_folder_->DatabasePath(), damage.ToString());
  spdlog::error(
      "the database is damaged, so this daemon stops: the next daemon checks all of it and, if it is "
      "damaged, restores the newest undamaged backup; workers continue. {}",
      std::string(damage.message()));
  lifecycle_->Stop();
}

bool Daemon::OnLost(const absl::Status& loss, Connection* connection) {
  is_lost_ = true;
  is_saving_ = true;
  const absl::StatusOr<v1::Backup> saved = backups_->CreateFrom(connection);
  is_saving_ = false;
  if (!saved.ok()) {
    spdlog::error(
        "{}. Nothing is written any more, and the content could not be saved yet, which is tried again; do "
        "not stop this daemon before it says that the content is saved. {}",
        std::string(loss.message()), std::string(saved.status().message()));
    return false;
  }
  spdlog::error(
      "{}. The content is saved as {}, and this daemon stops: the next daemon restores it if there is no "
      "database, and otherwise uses the database that it finds; workers continue",
      std::string(loss.message()), saved->path());
  lifecycle_->Stop();
  return true;
}

absl::Status Daemon::OpenData(const DaemonOptions& options) {
  Cache::Options cache;
  cache.folder = state_folder_->CacheFolder();
  cache.most_bytes = options.cache_bytes;
  cache.needed = [this]() -> absl::StatusOr<Cache::Needed> {
    Cache::Needed needed;
    TANDEM_RETURN_IF_ERROR(jobs_->VisitNonTerminalJobs(
        [&needed](const v1::Job& job) { Fetcher::AddNeeded(job.spec(), &needed); }));
    // The registry does not exist during the start.
    if (registry_ == nullptr)
      return absl::UnavailableError("cannot answer yet: the daemon is starting; try again soon");
    for (const v1::Dataset& dataset : registry_->List()) Fetcher::AddNeeded(dataset.spec(), &needed);
    return needed;
  };
  TANDEM_ASSIGN_OR_RETURN(cache_, Cache::Open(std::move(cache)));
  CurlTransport::Options transport;
  for (const char* name : {"AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (transport.ca_file.empty()) transport.ca_file = ProcessEnvironment(name).value_or("");
  }
  transport.proxies = ReadProxies(ProcessEnvironment);
  transport_ = std::make_unique<CurlTransport>(std::move(transport));
  Fetcher::Options fetcher;
  TANDEM_ASSIGN_OR_RETURN(fetcher.policy, FetchPolicy::Parse(options.fetch_from));
  fetcher.public_folder = state_folder_->PublicFolder();
  fetcher.mirror = options.datasets_mirror;
  fetcher_ = std::make_unique<Fetcher>(std::move(fetcher), cache_.get(), transport_.get());

  for (const std::string& folder : options.data_folders) {
    std::error_code error;
    const std::filesystem::file_type found = std::filesystem::status(folder, error).type();
    if (found == std::filesystem::file_type::directory) {
      if (access(folder.c_str(), R_OK | X_OK) != 0) {
        spdlog::warn("data folder {} cannot be read by user {}: {}", folder, geteuid(), strerror(errno));
      }
      continue;
    }
    // The folder may be mounted later, but most often its name is misspelt.
    if (found == std::filesystem::file_type::not_found) {
      spdlog::warn("data folder {} does not exist", folder);
    } else {
      spdlog::warn("data folder {} {}", folder,
                   error ? "cannot be reached: " + error.message() : "is not a folder");
    }
  }
  // The catalog finds fetched public sets like sets in data folders.
  std::vector<std::string> data_folders = options.data_folders;
  data_folders.push_back(state_folder_->PublicFolder());
  DatasetWorkers::Options workers;
  workers.worker_program = std::filesystem::absolute(options.worker_program).string();
  // At most one reading per user pool thread. Fewer if memory is short.
  const int64_t memory = AvailableMemory() / 2;
  workers.memory_bytes = std::clamp(memory / kUserPoolThreads, kLeastReadingMemory, kMostReadingMemory);
  workers.most_running =
      static_cast<int>(std::clamp(memory / workers.memory_bytes, int64_t{1}, int64_t{kUserPoolThreads}));
  workers.time_limit = options.model_time_limit;
  workers.sandbox = SandboxFor(options);
  dataset_workers_ = std::make_unique<DatasetWorkers>(std::move(workers));
  DurableFacts durable;
  durable.find = [this](const std::string& digest) -> std::optional<std::string> {
    absl::StatusOr<std::optional<std::string>> facts = store_->FindDataFacts(digest);
    // If the database cannot be read, read the files again.
    return facts.ok() ? *std::move(facts) : std::nullopt;
  };
  durable.put = [this](const std::string& digest, std::string facts) {
    store_->Write([digest, facts = std::move(facts)](
                      Transaction& transaction) { return transaction.PutDataFacts(digest, facts); },
                  // If the disk is full, the files are read again after a restart.
                  [](const absl::Status&) {});
  };
  datasets_ =
      std::make_unique<DatasetCatalog>(std::move(data_folders), dataset_workers_.get(), std::move(durable));
  datasets_->SetRemote(fetcher_.get(), state_folder_->PublicFolder());
  return absl::OkStatus();
}

absl::Status Daemon::OpenDatasets(const DaemonOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<StoredDataset> registered, store_->Datasets());
  Uploads::Options uploads;
  uploads.folder = state_folder_->UploadsFolder();
  uploads.most_bytes_each = options.upload_limit;
  uploads.most_bytes = options.upload_space;
  if (restoration_.has_value()) uploads.restored = restoration_->time;
  std::map<std::string, Uploads::Owned> owned;
  for (const StoredDataset& dataset : registered) {
    if (!dataset.upload.empty()) {
      owned[dataset.upload] = {dataset.dataset.size_bytes(), dataset.dataset.user()};
    }
  }
  TANDEM_ASSIGN_OR_RETURN(uploads_,
                          Uploads::Open(std::move(uploads), Env::Real(), Clock::Real(), std::move(owned)));
  LogUnreadableUploads(uploads_->folder(), uploads_->Unreadable());
  registry_ = std::make_unique<DatasetRegistry>(store_.get(), uploads_.get(), datasets_.get(), Clock::Real(),
                                                state_folder_->PublicFolder());
  registry_->Restore(std::move(registered));
  datasets_->SetRegistered(registry_.get());
  return absl::OkStatus();
}

std::unique_ptr<JobRetention> Daemon::KeepJobsFor(absl::Duration keep) {
  JobRetention::Options options;
  options.keep = keep;
  if (restoration_.has_value()) options.restored = restoration_->time;
  JobRetention::Listener listener;
  listener.deleted = [this](const std::string& name) {
    spdlog::info("deleted {}: it ended longer ago than --keep-ended-jobs", name);
    AuditRecord record;
    record.event = "expired";
    record.resource = name;
    audit_->Add(std::move(record));
  };
  listener.failed = [](int64_t count, const std::string& first, const absl::Status& why) {
    if (first.empty()) {
      spdlog::error("cannot read the ended jobs for --keep-ended-jobs, will try again: {}", why.ToString());
      return;
    }
    spdlog::error("cannot delete {} jobs and sweeps for --keep-ended-jobs, will try again; {}: {}", count,
                  first, why.ToString());
  };
  listener.clock_jumped = [](const std::string& what) { spdlog::warn("for --keep-ended-jobs: {}", what); };
  return std::make_unique<JobRetention>(jobs_.get(), options, BootClock(), std::move(listener));
}

std::vector<JobDiskUse::Owned> Daemon::OwnedFolders() {
  std::vector<JobDiskUse::Owned> folders;
  JobQuery query;
  query.page_size = 1000;
  while (true) {
    const absl::StatusOr<JobPage> page = store_->ListJobs(query);
    if (!page.ok()) {
      spdlog::warn("cannot count the disk use of earlier jobs: {}", page.status().ToString());
      return folders;
    }
    for (const v1::Job& job : page->jobs) {
      folders.push_back({.job_id = JobId(job.name()),
                         .user = job.user(),
                         .is_active = !IsAtRest(job.state()) && !IsTerminal(job.state())});
    }
    if (page->next_page_token.empty()) return folders;
    query.page_token = page->next_page_token;
  }
}

}  // namespace tandem
