#ifndef TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_
#define TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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
  // not answer, and why. May take a while.
  absl::Status Refresh(v1::GpuStatus* status) const;

 private:
  GpuMonitor() = default;
  void Look(const Options& options);
  // Those of all GPUs that are used.
  void Choose(std::vector<Nvml::Gpu> all, const Options& options);
  void AddNote(bool is_warning, absl::string_view text);

  // Null where there is no driver.
  std::unique_ptr<Nvml> nvml_;
  std::vector<HostGpu> gpus_;
  // As gpus_.
  std::vector<NvmlHandle> handles_;
  std::vector<Note> notes_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_GPU_MONITOR_H_
