#ifndef TANDEM_TESTS_INTEGRATION_API_H_
#define TANDEM_TESTS_INTEGRATION_API_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "tandem/v1/daemon_service.grpc.pb.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tests/integration/daemon_process.h"

namespace tandem::testing {

// Plain calls of a daemon's API, with its token or another token. If a call fails, the test fails, and the
// result is empty. The Try functions return their status instead. Use it for a run of the daemon and its
// later runs. Not thread-safe.
class Api {
 public:
  explicit Api(const DaemonProcess& daemon, std::string token = "");

  v1::Job Create(const v1::JobSpec& spec, const std::string& request_id = "");
  grpc::Status TryCreate(const v1::JobSpec& spec);
  v1::Job Get(const std::string& job);
  std::vector<v1::Job> List();
  v1::Job Cancel(const std::string& job);
  v1::Job Pause(const std::string& job);
  v1::Job Resume(const std::string& job);
  grpc::Status TryResume(const std::string& job);
  // Forks from the checkpoint of `step` (-1: the newest). Default spec: the other job's.
  v1::Job Fork(const std::string& job, int64_t step = -1, const v1::JobSpec* spec = nullptr);
  // Returns the steps of a job's checkpoints, newest first.
  std::vector<int64_t> Checkpoints(const std::string& job);
  grpc::Status TryCancel(const std::string& job);
  grpc::Status TryPause(const std::string& job);
  grpc::Status TrySetPriority(const std::string& job, int priority);
  void Delete(const std::string& job);
  std::vector<v1::Device> Devices();
  v1::ListQueueResponse Queue();
  // Creates a token for a user. Returns the secret.
  std::string MakeToken(const std::string& user);

  // Waits for the state or a terminal state. Returns the job.
  v1::Job WaitFor(const std::string& job, v1::JobState state, absl::Duration timeout = absl::Minutes(3));
  // Creates a job, and expects that the job reaches the state. Returns its name.
  std::string CreateAndAwait(const v1::JobSpec& spec, v1::JobState state,
                             absl::Duration timeout = absl::Minutes(3));

 private:
  template <typename Stub, typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);

  // Makes a call. Returns its status.
  template <typename Stub, typename Request, typename Response>
  grpc::Status Try(Method<Stub, Request, Response> method, const Request& request, Response* response,
                   bool wait_for_ready = false);
  // Makes a call, and waits for a daemon that starts. Expects OK.
  template <typename Stub, typename Request, typename Response>
  Response Expect(Method<Stub, Request, Response> method, const Request& request);
  // Makes a call that changes a job. Returns its status.
  template <typename Request>
  grpc::Status TryJob(Method<v1::JobService::Stub, Request, v1::Job> method, const Request& request);

  const DaemonProcess& daemon_;
  const std::string token_;
  const std::tuple<std::unique_ptr<v1::JobService::Stub>, std::unique_ptr<v1::DaemonService::Stub>> stubs_;
};

// Returns whether a job in this state has ended.
bool IsTerminal(v1::JobState state);

// Returns the health of the service "" by the standard health check, without a token: 1 is SERVING, 2
// NOT_SERVING, -1 a failed call.
int CheckHealth(const DaemonProcess& daemon);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_API_H_
