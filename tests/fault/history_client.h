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

// One client of a daemon, with a connection of its own, whose calls are recorded as they were answered. It
// repeats nothing by itself. Not thread-safe.
class HistoryClient {
 public:
  // The daemon must have been ready once, and may be killed and started again later. `number`: Call::client.
  HistoryClient(const DaemonProcess& daemon, HistoryRecorder* recorder, int number);

  // Each gives the call as it was recorded. `deadline` is for all of it: of a list for all pages.

  // `is_valid`: whether the spec is one that is to be accepted.
  Call Create(const v1::JobSpec& spec, const std::string& request_id, bool is_valid, absl::Duration deadline);
  Call Get(const std::string& job, absl::Duration deadline);
  Call Cancel(const std::string& job, absl::Duration deadline);
  Call Pause(const std::string& job, absl::Duration deadline);
  Call Resume(const std::string& job, absl::Duration deadline);
  Call Delete(const std::string& job, absl::Duration deadline);
  // All pages; `states`: only those, where there are any.
  Call List(int page_size, const std::vector<v1::JobState>& states, absl::Duration deadline);
  // Until the stream ends or the deadline comes.
  Call Watch(const std::string& job, int64_t after_sequence, absl::Duration deadline);

 private:
  Call Begin(CallKind kind, const std::string& job) const;
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Duration deadline) const;
  static SeenJob Seen(const v1::Job& job, absl::Duration begin, absl::Duration end);
  // A call that names a job and answers with it.
  template <typename Request>
  using Method = grpc::Status (v1::JobService::Stub::*)(grpc::ClientContext*, const Request&, v1::Job*);
  template <typename Request>
  Call OfJob(CallKind kind, const std::string& name, absl::Duration deadline, Method<Request> method);
  // Records the call, which showed `job` where it went well.
  Call End(Call call, const grpc::Status& status, const v1::Job* job = nullptr);

  HistoryRecorder* const recorder_;
  const int number_;
  const std::string authorization_;
  const std::unique_ptr<v1::JobService::Stub> stub_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_CLIENT_H_
