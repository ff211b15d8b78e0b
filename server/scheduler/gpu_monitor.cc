#include "server/scheduler/gpu_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/scheduler/visible_gpus.h"

namespace tandem {
namespace {

// The oldest generation that the engine's code is compiled for (Ampere), the first with bfloat16.
constexpr int kLeastComputeMajor = 8;

// "no GPU", "1 GPU", "2 GPUs".
std::string CountOf(size_t gpus) {
  if (gpus == 0) return "no GPU";
  return gpus == 1 ? "1 GPU" : absl::StrCat(gpus, " GPUs");
}

// Why a GPU cannot be used, whatever the environment says; empty where it can.
std::string WhyNot(const Nvml::Gpu& gpu) {
  if (gpu.is_split)
    return "it is split into instances (MIG), which are not supported; switch MIG off to use it";
  if (gpu.is_prohibited) {
    return "its compute mode is 'prohibited'; to use it: nvidia-smi --compute-mode=DEFAULT";
  }
  if (gpu.major < kLeastComputeMajor) {
    return absl::StrCat("its compute capability is ", gpu.major, ".", gpu.minor, ", and ", kLeastComputeMajor,
                        ".0 is needed");
  }
  return "";
}

}  // namespace

std::unique_ptr<GpuMonitor> GpuMonitor::Open(const Options& options) {
  std::unique_ptr<GpuMonitor> monitor(new GpuMonitor());
  monitor->Look(options);
  return monitor;
}

void GpuMonitor::AddNote(bool is_warning, absl::string_view text) {
  notes_.push_back({is_warning, std::string(text)});
}

void GpuMonitor::Look(const Options& options) {
  absl::StatusOr<std::unique_ptr<Nvml>> nvml = Nvml::Load(options.nvml_path);
  if (absl::IsNotFound(nvml.status())) {
    return AddNote(false, absl::StrCat("no GPUs: ", nvml.status().message()));
  }
  if (!nvml.ok()) {
    return AddNote(true, absl::StrCat("GPUs, if any, are not used: ", nvml.status().message()));
  }
  nvml_ = *std::move(nvml);
  const absl::StatusOr<int> count = nvml_->CountGpus();
  if (!count.ok()) return AddNote(true, absl::StrCat("GPUs are not used: ", count.status().message()));
  if (*count == 0) return AddNote(false, "no GPUs: the driver knows of none");
  if (options.cuda_major == 0) {
    return AddNote(true,
                   absl::StrCat(CountOf(*count),
                                " not used: this program was built without CUDA; build it where the CUDA "
                                "toolkit is"));
  }
  if (nvml_->cuda_version() > 0 && nvml_->cuda_version() < 1000 * options.cuda_major) {
    return AddNote(
        true,
        absl::StrFormat("%s not used: the driver, version %s, runs CUDA up to %d.%d, and this program was "
                        "built with CUDA %d; install a newer driver",
                        CountOf(*count), nvml_->driver_version(), nvml_->cuda_version() / 1000,
                        nvml_->cuda_version() % 1000 / 10, options.cuda_major));
  }
  std::vector<Nvml::Gpu> all(*count);
  for (int i = 0; i < *count; ++i) {
    absl::StatusOr<Nvml::Gpu> gpu = nvml_->Describe(i);
    if (gpu.ok()) {
      all[i] = *std::move(gpu);
    } else {
      AddNote(true, absl::StrCat("GPU ", i, " is not used: ", gpu.status().message()));
    }
  }
  Choose(std::move(all), options);
}

void GpuMonitor::Choose(std::vector<Nvml::Gpu> all, const Options& options) {
  std::vector<int> wanted;
  if (options.visible_devices.has_value()) {
    std::vector<std::string> uuids;
    for (const Nvml::Gpu& gpu : all) uuids.push_back(gpu.status.uuid());
    wanted = VisibleGpus(*options.visible_devices, uuids);
    AddNote(false, absl::StrCat("CUDA_VISIBLE_DEVICES is '", *options.visible_devices, "': it leaves ",
                                wanted.size(), " of ", CountOf(all.size())));
  } else {
    for (size_t i = 0; i < all.size(); ++i) wanted.push_back(static_cast<int>(i));
  }
  for (const int i : wanted) {
    Nvml::Gpu& gpu = all[i];
    if (gpu.handle == nullptr) continue;
    if (const std::string why = WhyNot(gpu); !why.empty()) {
      AddNote(true, absl::StrCat("GPU ", i, " (", gpu.model, ") is not used: ", why));
      continue;
    }
    handles_.push_back(gpu.handle);
    gpus_.push_back({std::move(gpu.model), std::move(gpu.status)});
  }
}

absl::Status GpuMonitor::Refresh(v1::GpuStatus* status) const {
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].status.uuid() == status->uuid()) return nvml_->Refresh(handles_[i], status);
  }
  return absl::UnavailableError(absl::StrCat("there is no GPU ", status->uuid()));
}

}  // namespace tandem
