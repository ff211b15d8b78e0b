#ifndef TANDEM_TESTS_BENCH_LOADED_DAEMON_H_
#define TANDEM_TESTS_BENCH_LOADED_DAEMON_H_

#include <grpcpp/client_context.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tandem/v1/job_service.grpc.pb.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::bench {

// A real daemon on a new folder, and plain calls of it, for measurements. The calls are thread-safe after the
// start.
class LoadedDaemon {
 public:
  explicit LoadedDaemon(int cpu_devices);

  absl::Status Start();
  testing::DaemonProcess& process() { return process_; }

  // Returns a stub with its own connection, and a context for one of its calls.
  std::unique_ptr<v1::JobService::Stub> NewStub() const;
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Duration deadline) const;

  absl::StatusOr<v1::Job> Create(const v1::JobSpec& spec, bool validate_only = false);
  absl::StatusOr<v1::Job> Get(const std::string& job);
  // Waits for the state, at most a minute.
  absl::Status WaitFor(const std::string& job, v1::JobState state);
  // Submits a job that trains on one device until it is cancelled, before all others. Returns it when it is
  // RUNNING.
  absl::StatusOr<v1::Job> StartEndlessJob();

  // Returns the resident memory of the daemon's process, in MiB.
  double MemoryMib() const;

 private:
  testing::ScratchFolder scratch_;
  testing::DaemonProcess process_;
  std::string authorization_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

// Returns a job that trains for days in steps of milliseconds, reports once a second and writes no
// checkpoints.
v1::JobSpec EndlessJob();

// Pins a process and all its threads to a core. 0 is the calling process; its new threads and processes use
// the core, too.
absl::Status PinProcess(pid_t process, int core);

// Converts the status of a call.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOADED_DAEMON_H_
