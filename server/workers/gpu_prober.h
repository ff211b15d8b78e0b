#ifndef TANDEM_SERVER_WORKERS_GPU_PROBER_H_
#define TANDEM_SERVER_WORKERS_GPU_PROBER_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "engine/base/unique_fd.h"
#include "server/workers/sandbox_options.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// Checks if GPUs still work after a worker crashed on them. Asks each GPU's driver, then runs a process of
// the worker's program on the GPU, because the daemon never uses GPUs. Checks run one after another on the
// prober's own thread, so a hanging driver or GPU delays only checks. Thread-safe.
class GpuProber {
 public:
  struct Options {
    // The path of tandem-worker.
    std::string worker_program;
    // The UUIDs of all of the daemon's GPUs, in the order of their indices.
    std::vector<std::string> gpu_uuids;
    // A process that takes longer is killed: its GPU hangs.
    absl::Duration time_limit = absl::Minutes(1);
    // As in WorkerLauncher.
    SandboxOptions sandbox = {};
    // Asks a device's driver. OK: the device works. CANCELLED: stop asking. Other status: the device does not
    // work; the message tells how. May block for long, and Stop waits for it. Null: drivers are not asked.
    std::function<absl::Status(const v1::Device&)> ask_driver = nullptr;
  };
  // Called for each device after its check. OK: the device works, or its state is unknown. UNAVAILABLE with
  // the reason: the device does not work. CANCELLED: the prober was stopped.
  using Found = std::function<void(const v1::Device&, const absl::Status&)>;
  // Called after the last device.
  using Done = std::function<void()>;

  explicit GpuProber(Options options);
  // Calls Stop.
  ~GpuProber();
  GpuProber(const GpuProber&) = delete;
  GpuProber& operator=(const GpuProber&) = delete;

  // Checks the devices after all earlier ones. Returns at once. `found` and `done` run on the prober's
  // thread, or, after Stop, on the caller's.
  void Post(std::vector<v1::Device> devices, Found found, Done done);
  // Ends the running check, and calls all waiting callbacks. Idempotent.
  void Stop();

 private:
  struct Task {
    std::vector<v1::Device> devices;
    Found found;
    Done done;
  };
  void Run();
  absl::Status Probe(const v1::Device& device);
  bool Stopping() const;

  const Options options_;
  // Becomes readable for Stop.
  const UniqueFd wake_;
  mutable Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_GPU_PROBER_H_
