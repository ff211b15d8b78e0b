#include "tests/bench/load_submits.h"

#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "engine/base/status_macros.h"
#include "tests/bench/latencies.h"
#include "tests/bench/loaded_daemon.h"
#include "tests/integration/job_specs.h"

namespace tandem::bench {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(30);

// The answers. Thread-safe.
class Answers {
 public:
  void Add(absl::Duration latency, const grpc::Status& status, const std::string& job) {
    if (status.ok()) latencies_.Add(latency);
    MutexLock lock(&mutex_);
    ++count_;
    if (status.ok()) {
      accepted_.insert(job);
    } else {
      ++errors_[absl::StrCat(absl::StatusCodeToString(FromGrpc(status).code()), ": ",
                             status.error_message().substr(0, 100))];
    }
  }

  void WaitFor(int64_t count) const {
    MutexLock lock(&mutex_);
    const auto all = [this, count]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return count_ >= count; };
    mutex_.Await(absl::Condition(&all));
  }

  const Latencies& latencies() const { return latencies_; }
  std::set<std::string> accepted() const {
    MutexLock lock(&mutex_);
    return accepted_;
  }
  std::map<std::string, int64_t> errors() const {
    MutexLock lock(&mutex_);
    return errors_;
  }

 private:
  Latencies latencies_;
  mutable Mutex mutex_;
  int64_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::string> accepted_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> errors_ ABSL_GUARDED_BY(mutex_);
};

// A call. It deletes itself when its answer arrives.
struct Submission {
  std::unique_ptr<grpc::ClientContext> context;
  v1::CreateJobRequest request;
  v1::Job job;
};

absl::StatusOr<std::set<std::string>> ListAll(const LoadedDaemon& daemon) {
  const auto stub = daemon.NewStub();
  std::set<std::string> jobs;
  v1::ListJobsRequest request;
  request.set_page_size(1000);
  do {
    v1::ListJobsResponse response;
    TANDEM_RETURN_IF_ERROR(FromGrpc(stub->ListJobs(daemon.NewContext(kDeadline).get(), request, &response)));
    for (const v1::Job& job : response.jobs()) jobs.insert(job.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  return jobs;
}

void Submit(const LoadedDaemon& daemon, v1::JobService::Stub* stub, int64_t number, absl::Time due,
            Answers* answers) {
  auto* submission = new Submission;
  submission->context = daemon.NewContext(kDeadline);
  *submission->request.mutable_spec() = testing::SmallJob({});
  submission->request.set_request_id(absl::StrCat("submission-", number));
  stub->async()->CreateJob(submission->context.get(), &submission->request, &submission->job,
                           [submission, due, answers](const grpc::Status& status) {
                             const absl::Duration latency = absl::Now() - due;
                             const std::string job = submission->job.name();
                             // A context holds its channel, and gRPC 1.51 crashes if its own thread releases
                             // a channel last. So the context ends before the benchmark can end.
                             delete submission;
                             answers->Add(latency, status, job);
                           });
}

}  // namespace

absl::Status MeasureSubmits(const SubmitsSettings& settings) {
  LoadedDaemon daemon(/*cpu_devices=*/1);
  TANDEM_RETURN_IF_ERROR(daemon.Start());
  TANDEM_RETURN_IF_ERROR(daemon.StartEndlessJob().status());
  std::vector<std::unique_ptr<v1::JobService::Stub>> stubs;
  for (int i = 0; i < settings.connections; ++i) stubs.push_back(daemon.NewStub());

  Answers answers;
  const auto count = static_cast<int64_t>(settings.per_second * settings.seconds);
  const absl::Time begin = absl::Now() + absl::Milliseconds(100);
  for (int64_t i = 0; i < count; ++i) {
    const absl::Time due = begin + static_cast<double>(i) / settings.per_second * absl::Seconds(1);
    absl::SleepFor(due - absl::Now());
    Submit(daemon, stubs[i % settings.connections].get(), i, due, &answers);
  }
  answers.WaitFor(count);
  const absl::Duration taken = absl::Now() - begin;
  const double memory_mib = daemon.MemoryMib();

  daemon.process().Kill();
  const absl::Time restart = absl::Now();
  TANDEM_RETURN_IF_ERROR(daemon.Start());
  const absl::Duration restarted = absl::Now() - restart;
  TANDEM_ASSIGN_OR_RETURN(const std::set<std::string> there, ListAll(daemon));
  int64_t missing = 0;
  const std::set<std::string> accepted = answers.accepted();
  for (const std::string& job : accepted) missing += there.count(job) == 0;

  nlohmann::ordered_json line = {{"bench", "submits"},
                                 {"per_second", settings.per_second},
                                 {"seconds", settings.seconds},
                                 {"sent", count},
                                 {"accepted", accepted.size()},
                                 {"missing_after_kill", missing},
                                 {"seconds_to_last_answer", absl::ToDoubleSeconds(taken)},
                                 {"latency", answers.latencies().ToJson()},
                                 {"errors", answers.errors()},
                                 {"daemon_mib", memory_mib},
                                 {"restart_seconds", absl::ToDoubleSeconds(restarted)}};
  std::cout << line.dump() << std::endl;
  std::cout << Latencies::TableHead() << answers.latencies().ToRow("accepted, after it was due")
            << absl::StrFormat("%d sent, %d accepted, %d missing after SIGKILL\n", count, accepted.size(),
                               missing);
  return missing == 0 ? absl::OkStatus() : absl::DataLossError("jobs are missing that were accepted");
}

}  // namespace tandem::bench
