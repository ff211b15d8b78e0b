#ifndef TANDEM_SERVER_SCHEDULER_GPU_ERROR_WATCH_H_
#define TANDEM_SERVER_SCHEDULER_GPU_ERROR_WATCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/scheduler/nvml.h"

namespace tandem {

// Listens to the driver for errors of some GPUs, on a thread of its own, as long as it lives.
class GpuErrorWatch {
 public:
  struct Options {
    // The longest that one wait for the driver takes, and so about the longest that the end does.
    absl::Duration wait = absl::Milliseconds(500);
    // Where the driver fails, it is asked anew after this.
    absl::Duration retry = absl::Seconds(10);
  };
  // Position in `gpus`, and the XID. On the watch's thread, which waits for it.
  using OnError = std::function<void(int gpu, int64_t xid)>;

  // `nvml` outlives this. Where the driver reports no errors, nothing is ever called.
  GpuErrorWatch(const Nvml* nvml, std::vector<NvmlHandle> gpus, OnError on_error, Options options);
  GpuErrorWatch(const Nvml* nvml, std::vector<NvmlHandle> gpus, OnError on_error)
      : GpuErrorWatch(nvml, std::move(gpus), std::move(on_error), Options()) {}
  ~GpuErrorWatch();
  GpuErrorWatch(const GpuErrorWatch&) = delete;
  GpuErrorWatch& operator=(const GpuErrorWatch&) = delete;

 private:
  void Run();
  // Until the end, or until the driver fails; not for long where some could not be listened to.
  void Listen(const Nvml::ErrorEvents& events);
  // Reports those that have stopped answering, as XID 79.
  void FindLost();
  bool Ends() const;

  const Nvml* const nvml_;
  const OnError on_error_;
  const Options options_;
  const std::vector<NvmlHandle> gpus_;
  // As gpus_; of the thread.
  std::vector<bool> is_lost_;
  mutable Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GPU_ERROR_WATCH_H_
