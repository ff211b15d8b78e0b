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
#include "server/workers/sandbox_options.h"
#include "server/workers/unique_fd.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// Finds out whether GPUs on which a worker failed still work: it asks their driver, and then lets a process
// of the worker program's try each, since the daemon itself never touches one. One after the other, on a
// thread of its own, so that a driver or a GPU that hangs holds up nothing but checks. Thread-safe.
class GpuProber {
 public:
  struct Options {
    // The tandem-worker program.
    std::string worker_program;
    // The UUIDs of all GPUs that the daemon has, in the order of their indices.
    std::vector<std::string> gpu_uuids;
    // A process that takes longer is ended: its GPU hangs.
    absl::Duration time_limit = absl::Minutes(1);
    // As WorkerLauncher's.
    SandboxOptions sandbox = {};
    // What a device's driver says of it: OK; CANCELLED: it is not asked any more; any other status: the
    // device does not work, and the message says how that was seen. It may wait for long, and Stop() waits
    // for it. Null: drivers are not asked.
    std::function<absl::Status(const v1::Device&)> ask_driver = nullptr;
  };
  // As soon as it is known of a device: OK where it works, or nobody could tell; UNAVAILABLE, and why, where
  // it does not; CANCELLED where the prober was stopped.
  using Found = std::function<void(const v1::Device&, const absl::Status&)>;
  // After the last of them.
  using Done = std::function<void()>;

  explicit GpuProber(Options options);
  // Stop().
  ~GpuProber();
  GpuProber(const GpuProber&) = delete;
  GpuProber& operator=(const GpuProber&) = delete;

  // Probes them after what was posted before, and returns at once. Both are called on the prober's thread, or
  // on this one once it was stopped.
  void Post(std::vector<v1::Device> devices, Found found, Done done);
  // Ends what runs, and tells whoever waits. Idempotent.
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
  // Readable once it is to stop.
  const UniqueFd wake_;
  mutable Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Mutex stop_mutex_;
  std::thread thread_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_GPU_PROBER_H_
