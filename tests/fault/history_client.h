#ifndef TANDEM_TESTS_FAULT_HISTORY_CLIENT_H_
#define TANDEM_TESTS_FAULT_HISTORY_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tandem/v1/job.pb.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tests/fault/history.h"
#include "tests/fault/history_recorder.h"
#include "tests/integration/daemon_process.h"

namespace tandem::testing {

// A client of a daemon with its own connection, which records each call with its answer. It never repeats a
// call. Not thread-safe.
class HistoryClient {
 public:
  // The daemon must have been ready once. It may be killed and started again later. `number` is Call::client.
  HistoryClient(const DaemonProcess& daemon, HistoryRecorder* recorder, int number);

  // Each function makes a call and returns its record. `deadline` is for the whole call: for List, for all
  // pages.

  // `is_valid`: whether the daemon should accept the spec.
  Call Create(const v1::JobSpec& spec, const std::string& request_id, bool is_valid, absl::Duration deadline);
  Call Get(const std::string& job, absl::Duration deadline);
  Call Cancel(const std::string& job, absl::Duration deadline);
  Call Pause(const std::string& job, absl::Duration deadline);
  Call Resume(const std::string& job, absl::Duration deadline);
  Call Delete(const std::string& job, absl::Duration deadline);
  // Lists all pages. `states`: only jobs in these states, if any are given.
  Call List(int page_size, const std::vector<v1::JobState>& states, absl::Duration deadline);
  // Watches until the stream ends or the deadline passes.
  Call Watch(const std::string& job, int64_t after_sequence, absl::Duration deadline);

 private:
  Call Begin(CallKind kind, const std::string& job) const;
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Duration deadline) const;
  static SeenJob Seen(const v1::Job& job, absl::Duration begin, absl::Duration end);
  // A method that names a job and returns the job.
  template <typename Request>
  using Method = grpc::Status (v1::JobService::Stub::*)(grpc::ClientContext*, const Request&, v1::Job*);
  template <typename Request>
  Call OfJob(CallKind kind, const std::string& name, absl::Duration deadline, Method<Request> method);
  // Records the call. `job` is the answer of a successful call.
  Call End(Call call, const grpc::Status& status, const v1::Job* job = nullptr);

  HistoryRecorder* const recorder_;
  const int number_;
  const std::string authorization_;
  const std::unique_ptr<v1::JobService::Stub> stub_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_CLIENT_H_
