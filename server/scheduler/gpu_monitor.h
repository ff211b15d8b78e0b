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

// The machine's NVIDIA GPUs that jobs can use: which there are, and how they are. Thread-safe.
class GpuMonitor {
 public:
  struct Options {
    // The file of NVML; empty: the usual places.
    std::string nvml_path;
    // The environment's CUDA_VISIBLE_DEVICES.
    std::optional<std::string> visible_devices;
    // The major version of CUDA that workers are built with; 0: without CUDA.
    int cuda_major = 0;
  };
  // What was found, for the log.
  struct Note {
    bool is_warning = false;
    std::string text;
  };

  // Looks for GPUs. What cannot be used is left out, and a note says why: a machine is not worse for it.
  static std::unique_ptr<GpuMonitor> Open(const Options& options);

  // In the order of CUDA_VISIBLE_DEVICES, else of the PCI bus, as in nvidia-smi.
  const std::vector<HostGpu>& gpus() const { return gpus_; }
  const std::vector<Note>& notes() const { return notes_; }

  // Brings up to date what `status`, of the GPU of its UUID, says of what changes. UNAVAILABLE: the GPU does
  // not answer, or its driver not within `limit`, and why. CANCELLED: after Stop. May take a while.
  absl::Status Refresh(v1::GpuStatus* status, absl::Duration limit = absl::Seconds(2)) const;

  // An error that the driver reports of a GPU.
  struct Error {
    std::string uuid;
    v1::GpuError error;
    // No job should have the GPU until someone has looked.
    bool is_of_hardware = false;
  };
  // Has `on_error` called, on a thread of its own, with every error that the driver reports from now on;
  // Refresh tells of the last. Once.
  void WatchErrors(std::function<void(const Error&)> on_error);
  // Returns when it is called no more, about half a second later. Idempotent.
  void StopWatching() { watch_ = nullptr; }
  // Refresh asks no more, and who waits for it gets CANCELLED; then as StopWatching. Idempotent.
  void Stop();

 private:
  GpuMonitor() = default;
  void Look(const Options& options);
  // Those of all GPUs that are used.
  void Choose(std::vector<Nvml::Gpu> all, const Options& options);
  // Says how they are connected.
  void DescribeLinks();
  void AddNote(bool is_warning, absl::string_view text);

  // Null where there is no driver. A question that hangs keeps it.
  std::shared_ptr<const Nvml> nvml_;
  std::vector<HostGpu> gpus_;
  // As gpus_.
  std::vector<NvmlHandle> handles_;
  std::vector<Note> notes_;
  mutable Mutex mutex_;
  // By UUID, the last of each.
  std::map<std::string, v1::GpuError> errors_ ABSL_GUARDED_BY(mutex_);
  mutable DriverQuestions questions_;
  // Its thread uses the rest. Null while nobody watches.
  std::unique_ptr<GpuErrorWatch> watch_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_
