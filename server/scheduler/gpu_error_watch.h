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

// Listens to the driver for errors of GPUs, on its own thread, until destroyed.
class GpuErrorWatch {
 public:
  struct Options {
    // The longest single wait for the driver, and so about the longest time that destruction takes.
    absl::Duration wait = absl::Milliseconds(500);
    // The delay before the driver is asked again after a failure.
    absl::Duration retry = absl::Seconds(10);
  };
  // Called with the position in `gpus` and the XID, on the watch's thread, which blocks meanwhile.
  using OnError = std::function<void(int gpu, int64_t xid)>;

  // `nvml` must outlive this object. If the driver reports no errors, `on_error` is never called.
  GpuErrorWatch(const Nvml* nvml, std::vector<NvmlHandle> gpus, OnError on_error, Options options);
  GpuErrorWatch(const Nvml* nvml, std::vector<NvmlHandle> gpus, OnError on_error)
      : GpuErrorWatch(nvml, std::move(gpus), std::move(on_error), Options()) {}
  ~GpuErrorWatch();
  GpuErrorWatch(const GpuErrorWatch&) = delete;
  GpuErrorWatch& operator=(const GpuErrorWatch&) = delete;

 private:
  void Run();
  // Listens until destruction or a failure of the driver. If some GPUs could not be registered, returns after
  // `retry`.
  void Listen(const Nvml::ErrorEvents& events);
  // Reports GPUs that no longer answer, as XID 79.
  void FindLost();
  bool Ends() const;

  const Nvml* const nvml_;
  const OnError on_error_;
  const Options options_;
  const std::vector<NvmlHandle> gpus_;
  // One element per GPU in gpus_. Only the thread uses it.
  std::vector<bool> is_lost_;
  mutable Mutex mutex_;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GPU_ERROR_WATCH_H_
