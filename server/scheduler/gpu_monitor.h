#ifndef TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_
#define TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "server/scheduler/driver_questions.h"
#include "server/scheduler/gpu_error_watch.h"
#include "server/scheduler/host_resources.h"
#include "server/scheduler/nvml.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// The machine's usable NVIDIA GPUs and their current status. Thread-safe.
class GpuMonitor {
 public:
  struct Options {
    // The path of NVML's library. Empty: the usual places.
    std::string nvml_path;
    // CUDA_VISIBLE_DEVICES in the environment.
    std::optional<std::string> visible_devices;
    // The major version of the workers' CUDA. 0: no CUDA.
    int cuda_major = 0;
  };
  // A finding for the log.
  struct Note {
    bool is_warning = false;
    std::string text;
  };

  // Finds the GPUs. Leaves out unusable GPUs, with a note about the reason. Never fails.
  static std::unique_ptr<GpuMonitor> Open(const Options& options);

  // Returns the GPUs in the order of CUDA_VISIBLE_DEVICES, or else of the PCI bus, as nvidia-smi does.
  const std::vector<HostGpu>& gpus() const { return gpus_; }
  const std::vector<Note>& notes() const { return notes_; }

  // Updates the variable fields of `status`, which names a GPU by its UUID. UNAVAILABLE with the reason: the
  // GPU does not answer, or its driver does not answer within `limit`. CANCELLED: Stop was called. May block
  // for `limit`.
  absl::Status Refresh(v1::GpuStatus* status, absl::Duration limit = absl::Seconds(2)) const;

  // An error of a GPU that the driver reported.
  struct Error {
    std::string uuid;
    v1::GpuError error;
    // True if no job should get the GPU until somebody has examined it.
    bool is_of_hardware = false;
  };
  // Calls `on_error`, on its own thread, for each error that the driver reports from now on. From then on,
  // Refresh also reports the last error. Call once.
  void WatchErrors(std::function<void(const Error&)> on_error);
  // Stops the watch. Returns after the last call of `on_error`, in about half a second. Idempotent.
  void StopWatching() { watch_ = nullptr; }
  // Stops Refresh, whose waiting callers get CANCELLED, then calls StopWatching. Idempotent.
  void Stop();

 private:
  GpuMonitor() = default;
  void Look(const Options& options);
  // Chooses the GPUs to use.
  void Choose(std::vector<Nvml::Gpu> all, const Options& options);
  // Describes the connections between the GPUs.
  void DescribeLinks();
  void AddNote(bool is_warning, absl::string_view text);

  // Null without a driver. A hanging question keeps it alive.
  std::shared_ptr<const Nvml> nvml_;
  std::vector<HostGpu> gpus_;
  // One element per GPU in gpus_.
  std::vector<NvmlHandle> handles_;
  std::vector<Note> notes_;
  mutable Mutex mutex_;
  // The last error of each GPU, by UUID.
  std::map<std::string, v1::GpuError> errors_ ABSL_GUARDED_BY(mutex_);
  mutable DriverQuestions questions_;
  // Its thread uses the members above. Null if nobody watches.
  std::unique_ptr<GpuErrorWatch> watch_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_
