#include "server/daemon/restoration.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/sha256.h"
#include "engine/base/status_macros.h"
#include "server/store/pending_result.h"
#include "server/store/records.h"
#include "server/store/state_folder.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

std::string ShowTime(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%d %H:%M:%S UTC", time, absl::UTCTimeZone());
}

std::string TimeOf(const Restoration& restoration) {
  if (restoration.backup_time == absl::InfinitePast()) return "an earlier time";
  return ShowTime(restoration.backup_time);
}

// If a checksum by sha256sum or by the daemon exists beside the file, compares it. Returns true if a checksum
// exists.
absl::StatusOr<bool> CheckSum(const std::string& path) {
  const absl::StatusOr<std::string> written = Env::Real()->ReadFile(path + ".sha256");
  if (absl::IsNotFound(written.status())) return false;
  TANDEM_RETURN_IF_ERROR(written.status());
  TANDEM_ASSIGN_OR_RETURN(const std::string sum, Sha256OfFile(path));
  if (written->substr(0, written->find(' ')) == sum) return true;
  return absl::DataLossError(absl::StrCat("cannot use ", path, ": its SHA-256 is ", sum, ", not the one in ",
                                          path, ".sha256; use another backup"));
}

void LogRestoration(const Restoration& restoration, const std::string& jobs_folder,
                    const std::vector<v1::Upload>& uploads, JobMachine* jobs) {
  spdlog::error(
      "THE DATABASE {} RESTORED from {} of {}: jobs, events, tokens and data sets since then are lost, "
      "except what the folders of jobs still have. Damage: {}. The old database: {}",
      restoration.damage.empty()                          ? "WAS"
      : absl::EndsWith(restoration.damage, " is missing") ? "WAS MISSING AND IS"
                                                          : "WAS DAMAGED AND IS",
      restoration.backup_path, TimeOf(restoration),
      restoration.damage.empty() ? "unknown" : restoration.damage,
      restoration.aside.empty() ? "none" : restoration.aside);
  std::vector<std::string> unknown;
  std::error_code error;
  std::filesystem::directory_iterator entry(jobs_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (absl::IsNotFound(jobs->Get(entry->path().filename().string()).status())) {
      unknown.push_back(entry->path().filename().string());
    }
  }
  std::sort(unknown.begin(), unknown.end());
  for (const std::string& id : unknown) {
    spdlog::error(
        "job={} is not in the restored database: it was created after the backup, or deleted. Its folder "
        "{}/{} stays; remove it if nobody needs it",
        id, jobs_folder, id);
  }
  for (const v1::Upload& upload : uploads) {
    spdlog::error(
        "{} (files={} bytes={} user={}) is older than the restored database, which has no data set of it. It "
        "stays until it is registered again, with the same files and `tandem datasets add --upload`, or "
        "removed with `tandem datasets uploads --remove`",
        upload.name(), upload.files(), upload.bytes(), upload.user());
  }
}

// Searches the whole log, newest events first. An earlier daemon may have added the notice and run on, so
// many later events may follow.
absl::StatusOr<bool> IsInLog(Store* store, const v1::Job& job, const std::string& notice) {
  constexpr int kPageSize = 1000;
  for (int64_t end = job.last_sequence(); end > 0; end -= kPageSize) {
    const int64_t after = std::max<int64_t>(0, end - kPageSize);
    TANDEM_ASSIGN_OR_RETURN(const EventPage page, store->ReadEvents(JobId(job.name()), after, kPageSize));
    const bool is_here = std::any_of(page.events.begin(), page.events.end(), [&](const v1::JobEvent& event) {
      return event.notice().message() == notice;
    });
    if (is_here) return true;
  }
  return false;
}

// Bounds memory, because each answer has the job's whole spec.
constexpr size_t kToldAtOnce = 64;

// Adds the notice to each job that has not ended, and waits for the writes.
absl::Status TellJobs(const Restoration& restoration, Store* store, JobMachine* jobs) {
  // The time identifies the restoration, because a job may live through several.
  const std::string notice = absl::StrCat(
      "The daemon's database was restored on ", ShowTime(restoration.time), " from a backup of ",
      TimeOf(restoration), ": this log has nothing of the time between, and the job may repeat part of it.");
  TANDEM_ASSIGN_OR_RETURN(const std::vector<v1::Job> left, jobs->NonTerminalJobs());
  std::vector<std::pair<std::string, PendingResult<v1::Job>>> asked;
  int64_t failed = 0;
  absl::Status first;
  const auto await = [&] {
    for (const auto& [name, answer] : asked) {
      const absl::Status told = answer.Wait().status();
      // The job was deleted or has ended, and needs no notice.
      if (absl::IsNotFound(told) || absl::IsFailedPrecondition(told)) continue;
      if (!told.ok() && failed++ == 0) {
        first = absl::Status(told.code(), absl::StrCat(name, ": ", told.message()));
      }
    }
    asked.clear();
  };
  for (const v1::Job& job : left) {
    TANDEM_ASSIGN_OR_RETURN(const bool is_told, IsInLog(store, job, notice));
    if (is_told) continue;
    asked.emplace_back(job.name(), PendingResult<v1::Job>());
    jobs->AddNotice(JobId(job.name()), notice, asked.back().second.Callback());
    if (asked.size() == kToldAtOnce) await();
  }
  await();
  if (failed == 0) return absl::OkStatus();
  // A full disk fails all of them, so return only the first error.
  return absl::Status(first.code(), absl::StrCat("cannot add the restoration's notice to ", failed,
                                                 " jobs; the first: ", first.message()));
}

}  // namespace

// No job reaches this number of attempts.
constexpr int32_t kMostAttempts = 1'000'000'000;

NewestAttempt NewestAttemptIn(const std::string& jobs_folder) {
  return [jobs_folder](const std::string& job_id) {
    int32_t newest = 0;
    std::error_code error;
    std::filesystem::directory_iterator entry(jobs_folder + "/" + job_id, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      absl::string_view digits = name;
      int32_t attempt = 0;
      // Workers can also create folders there.
      if (absl::ConsumePrefix(&digits, "attempt-") && absl::SimpleAtoi(digits, &attempt) &&
          attempt <= kMostAttempts) {
        newest = std::max(newest, attempt);
      }
    }
    return newest;
  };
}

absl::StatusOr<std::string> RestoreAsAsked(const DaemonOptions& options) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<StateFolder> folder, StateFolder::Lock(options.state_folder));
  std::error_code error;
  std::string path = options.restore_backup;
  if (!std::filesystem::exists(path, error)) {
    const absl::string_view id = absl::StripPrefix(options.restore_backup, "backups/");
    path = absl::StrCat(folder->BackupsFolder(), "/", id, ".db");
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      const std::string reason = error ? absl::StrCat("cannot read the file: ", error.message())
                                       : std::string("there is no such file");
      return absl::NotFoundError(absl::StrCat(
          "cannot restore ", options.restore_backup, ": ", reason, ", and there is no such backup in ",
          folder->BackupsFolder(), "; give a file, or the name of a file in this folder without .db"));
    }
  }
  path = std::filesystem::absolute(path, error).string();
  TANDEM_ASSIGN_OR_RETURN(const bool has_sum, CheckSum(path));
  Restoration wanted;
  wanted.backup_path = path;
  const Backups backups({.folder = folder->BackupsFolder(), .database_path = folder->DatabasePath()});
  TANDEM_ASSIGN_OR_RETURN(const std::vector<v1::Backup> known, backups.List());
  for (const v1::Backup& backup : known) {
    if (backup.path() == path) wanted.backup_time = absl::FromUnixSeconds(backup.create_time().seconds());
  }
  TANDEM_ASSIGN_OR_RETURN(
      const Restoration restored,
      RestoreDatabase(folder->DatabasePath(), wanted, NewestAttemptIn(folder->JobsFolder()), Clock::Real()));
  return absl::StrCat(
      path,
      has_sum ? " was read and is undamaged; a copy"
              : absl::StrCat(" was read, and its structure is undamaged; its content cannot be checked, "
                             "because there is no ",
                             path, ".sha256. A copy"),
      " of it is now ", folder->DatabasePath(), ".\n",
      restored.aside.empty() ? "" : absl::StrCat("The old database is ", restored.aside, ".\n"),
      "Folders of jobs and of uploads are unchanged. Start tandemd normally: running jobs continue, or "
      "restart from their checkpoints.\n");
}

absl::Status TellOfRestoration(const std::string& database_path, const Restoration& restoration,
                               const std::string& jobs_folder, const std::vector<v1::Upload>& uploads,
                               Store* store, JobMachine* jobs) {
  if (restoration.told) return absl::OkStatus();
  LogRestoration(restoration, jobs_folder, uploads, jobs);
  TANDEM_RETURN_IF_ERROR(TellJobs(restoration, store, jobs));
  return NoteTold(database_path);
}

void LogUnreadableUploads(const std::string& uploads_folder, const std::vector<std::string>& ids) {
  for (const std::string& id : ids) {
    spdlog::error(
        "cannot read the upload in {}/{}, which is older than the restored database. It stays; remove it if "
        "nobody needs it",
        uploads_folder, id);
  }
}

}  // namespace tandem
