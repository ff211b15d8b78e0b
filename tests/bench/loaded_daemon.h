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

// A real daemon on a new folder, and plain calls of it, for measurements. The calls are thread-safe once it
// was started.
class LoadedDaemon {
 public:
  explicit LoadedDaemon(int cpu_devices);

  absl::Status Start();
  testing::DaemonProcess& process() { return process_; }

  // A stub with a connection of its own, and a context for one of its calls.
  std::unique_ptr<v1::JobService::Stub> NewStub() const;
  std::unique_ptr<grpc::ClientContext> NewContext(absl::Duration deadline) const;

  absl::StatusOr<v1::Job> Create(const v1::JobSpec& spec, bool validate_only = false);
  absl::StatusOr<v1::Job> Get(const std::string& job);
  // Waits for the state, a minute at most.
  absl::Status WaitFor(const std::string& job, v1::JobState state);
  // A job that trains until it is cancelled, before all others, on one device; RUNNING.
  absl::StatusOr<v1::Job> StartEndlessJob();

  // Resident memory of the daemon's process, in MiB.
  double MemoryMib() const;

 private:
  testing::ScratchFolder scratch_;
  testing::DaemonProcess process_;
  std::string authorization_;
  std::unique_ptr<v1::JobService::Stub> stub_;
};

// Days of training in steps of milliseconds, reported once a second, without checkpoints.
v1::JobSpec EndlessJob();

// Has a process, with all its threads, run on this core alone; 0 is the caller's, whose threads and processes
// to come follow.
absl::Status PinProcess(pid_t process, int core);

// The status of a call.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace tandem::bench

#endif  // TANDEM_TESTS_BENCH_LOADED_DAEMON_H_
