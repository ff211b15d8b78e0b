#include "tests/bench/load_many_jobs.h"

#include <atomic>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tests/bench/latencies.h"
#include "tests/bench/loaded_daemon.h"
#include "tests/bench/stored_jobs.h"
#include "tests/integration/job_specs.h"

namespace tandem::bench {
namespace {

constexpr absl::Duration kDeadline = absl::Minutes(2);

// A kind of call, which the measurement repeats.
struct Kind {
  std::string name;
  std::function<absl::Status()> call;
};

// Submits jobs at a steady rate until its destruction.
class Submitter {
 public:
  Submitter(LoadedDaemon* daemon, double per_second)
      : thread_([this, daemon, per_second] {
          while (!stopping_) {
            if (!daemon->Create(testing::SmallJob({})).ok()) ++errors_;
            absl::SleepFor(absl::Seconds(1 / per_second));
          }
        }) {}
  ~Submitter() {
    stopping_ = true;
    thread_.join();
    if (errors_ > 0) std::cerr << errors_ << " submissions failed\n";
  }

 private:
  std::atomic<bool> stopping_ = false;
  std::atomic<int> errors_ = 0;
  std::thread thread_;
};

class Measurement {
 public:
  explicit Measurement(const ManyJobsSettings& settings) : settings_(settings) {}

  absl::Status Run() {
    TANDEM_RETURN_IF_ERROR(Fill());
    stub_ = daemon_.NewStub();
    daemon_stub_ = v1::DaemonService::NewStub(daemon_.process().NewChannel());
    std::string table = Latencies::TableHead();
    TANDEM_RETURN_IF_ERROR(MeasureAll("", &table));
    if (settings_.submits_per_second > 0) {
      Submitter submitter(&daemon_, settings_.submits_per_second);
      TANDEM_RETURN_IF_ERROR(MeasureAll(", while jobs are submitted", &table));
    }
    std::cout << nlohmann::ordered_json{{"bench", "many_jobs"},
                                        {"queued", settings_.queued},
                                        {"finished", settings_.finished},
                                        {"fill_seconds", fill_seconds_},
                                        {"start_seconds", start_seconds_},
                                        {"daemon_mib_at_start", memory_mib_},
                                        {"daemon_mib", daemon_.MemoryMib()}}
                     .dump()
              << std::endl
              << table
              << absl::StrFormat("the daemon's start: %.2f s; its memory: %.0f MiB, then %.0f MiB\n",
                                 start_seconds_, memory_mib_, daemon_.MemoryMib());
    return absl::OkStatus();
  }

 private:
  absl::Status Fill() {
    TANDEM_RETURN_IF_ERROR(daemon_.Start());
    // It holds the device, and outlives the daemon.
    TANDEM_RETURN_IF_ERROR(daemon_.StartEndlessJob().status());
    TANDEM_ASSIGN_OR_RETURN(const v1::Job like,
                            daemon_.Create(testing::SmallJob({}), /*validate_only=*/true));
    if (daemon_.process().Terminate() != 0) return absl::InternalError("the daemon did not end well");
    const absl::Time begin = absl::Now();
    TANDEM_ASSIGN_OR_RETURN(
        jobs_, StoreJobs(daemon_.process().state_folder(), like, settings_.finished, settings_.queued));
    const absl::Time filled = absl::Now();
    fill_seconds_ = absl::ToDoubleSeconds(filled - begin);
    TANDEM_RETURN_IF_ERROR(daemon_.Start());
    start_seconds_ = absl::ToDoubleSeconds(absl::Now() - filled);
    memory_mib_ = daemon_.MemoryMib();
    return absl::OkStatus();
  }

  absl::Status MeasureAll(const std::string& how, std::string* table) {
    for (const Kind& kind : Kinds()) {
      Latencies latencies;
      for (int i = 0; i < settings_.calls; ++i) {
        const absl::Time begin = absl::Now();
        TANDEM_RETURN_IF_ERROR(kind.call());
        latencies.Add(absl::Now() - begin);
      }
      nlohmann::ordered_json line = {{"bench", "many_jobs"},
                                     {"queued", settings_.queued},
                                     {"finished", settings_.finished},
                                     {"call", kind.name + how}};
      line.update(latencies.ToJson());
      std::cout << line.dump() << std::endl;
      *table += latencies.ToRow(kind.name + how);
    }
    return absl::OkStatus();
  }

  std::vector<Kind> Kinds() {
    const auto list = [this](const v1::ListJobsRequest& request) { return List(request, nullptr); };
    v1::ListJobsRequest first;
    v1::ListJobsRequest by_name;
    by_name.set_order_by("name");
    v1::ListJobsRequest queued;
    queued.add_states(v1::JOB_STATE_QUEUED);
    v1::ListJobsRequest finished;
    finished.add_states(v1::JOB_STATE_SUCCEEDED);
    v1::ListJobsRequest oldest = finished;
    oldest.set_order_by("create_time");
    v1::ListJobsRequest failed;
    failed.add_states(v1::JOB_STATE_FAILED);
    return {
        {"list, newest 50", [=] { return list(first); }},
        {"list, 50 by name", [=] { return list(by_name); }},
        {"list, 50 queued", [=] { return list(queued); }},
        {"list, 50 succeeded", [=] { return list(finished); }},
        {"list, oldest 50 succeeded", [=] { return list(oldest); }},
        {"list, failed, of which there are none", [=] { return list(failed); }},
        {"list, the next page", [this] { return NextPage(); }},
        {"queue, the first 50", [this] { return Queue(); }},
        {"get, queued", [this] { return Get(AnyOf(jobs_.queued)); }},
        {"get, succeeded", [this] { return Get(AnyOf(jobs_.finished)); }},
        {"watch, queued, to the first event", [this] { return Watch(AnyOf(jobs_.queued), false); }},
        {"watch, succeeded, to the end", [this] { return Watch(AnyOf(jobs_.finished), true); }},
    };
  }

  absl::Status List(const v1::ListJobsRequest& request, std::string* next) {
    v1::ListJobsResponse response;
    TANDEM_RETURN_IF_ERROR(
        FromGrpc(stub_->ListJobs(daemon_.NewContext(kDeadline).get(), request, &response)));
    if (next != nullptr) *next = response.next_page_token();
    return absl::OkStatus();
  }

  // The page after the one before, all through the list and again from its beginning.
  absl::Status NextPage() {
    v1::ListJobsRequest request;
    request.set_page_token(page_token_);
    return List(request, &page_token_);
  }

  absl::Status Queue() {
    v1::ListQueueRequest request;
    v1::ListQueueResponse response;
    return FromGrpc(daemon_stub_->ListQueue(daemon_.NewContext(kDeadline).get(), request, &response));
  }

  absl::Status Get(const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    return FromGrpc(stub_->GetJob(daemon_.NewContext(kDeadline).get(), request, &job));
  }

  absl::Status Watch(const std::string& name, bool to_end) {
    v1::WatchJobRequest request;
    request.set_name(name);
    const auto context = daemon_.NewContext(kDeadline);
    const auto reader = stub_->WatchJob(context.get(), request);
    v1::JobEvent event;
    if (!reader->Read(&event)) return FromGrpc(reader->Finish());
    if (!to_end) {
      context->TryCancel();
      reader->Finish();
      return absl::OkStatus();
    }
    while (reader->Read(&event)) {
    }
    return FromGrpc(reader->Finish());
  }

  const std::string& AnyOf(const std::vector<std::string>& jobs) {
    return jobs[std::uniform_int_distribution<size_t>(0, jobs.size() - 1)(random_)];
  }

  const ManyJobsSettings settings_;
  LoadedDaemon daemon_{/*cpu_devices=*/1};
  StoredJobs jobs_;
  std::unique_ptr<v1::JobService::Stub> stub_;
  std::unique_ptr<v1::DaemonService::Stub> daemon_stub_;
  std::string page_token_;
  std::mt19937_64 random_{1};
  double fill_seconds_ = 0;
  double start_seconds_ = 0;
  double memory_mib_ = 0;
};

}  // namespace

absl::Status MeasureManyJobs(const ManyJobsSettings& settings) { return Measurement(settings).Run(); }

}  // namespace tandem::bench
