#include "server/scheduler/gpu_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/time_util.h"
#include "server/scheduler/visible_gpus.h"
#include "server/scheduler/xid.h"

namespace tandem {
namespace {

// The oldest generation for which the engine is compiled (Ampere), the first with bfloat16.
constexpr int kLeastComputeMajor = 8;

// Returns "no GPU", "1 GPU", "2 GPUs" and so on.
std::string CountOf(size_t gpus) {
  if (gpus == 0) return "no GPU";
  return gpus == 1 ? "1 GPU" : absl::StrCat(gpus, " GPUs");
}

// Returns the reason why jobs cannot use a GPU, apart from the environment; empty if they can.
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
  DescribeLinks();
}

void GpuMonitor::DescribeLinks() {
  if (gpus_.size() < 2) return;
  std::vector<Nvml::NvLinks> links;
  for (const NvmlHandle gpu : handles_) links.push_back(nvml_->LinksOf(gpu));
  for (size_t i = 0; i < gpus_.size(); ++i) {
    for (size_t j = 0; j < gpus_.size(); ++j) {
      if (i == j) continue;
      v1::GpuLink& link = *gpus_[i].status.add_links();
      link.set_device(absl::StrCat("devices/gpu:", j));
      link.set_path(nvml_->PathBetween(handles_[i], handles_[j]));
      const std::string& place = gpus_[j].status.pci_bus_id();
      const auto direct = std::count_if(
          links[i].to_gpus.begin(), links[i].to_gpus.end(),
          [&place](const std::string& remote) { return absl::EqualsIgnoreCase(remote, place); });
      // An NVLink switch connects all GPUs that have links to a switch.
      link.set_nvlinks(static_cast<int>(direct) + (links[j].to_switches > 0 ? links[i].to_switches : 0));
      link.set_peer_access(nvml_->ReadsMemoryOf(handles_[i], handles_[j]) &&
                           nvml_->ReadsMemoryOf(handles_[j], handles_[i]));
    }
  }
}

void GpuMonitor::WatchErrors(std::function<void(const Error&)> on_error) {
  if (gpus_.empty()) return;
  watch_ = std::make_unique<GpuErrorWatch>(
      nvml_.get(), handles_, [this, on_error = std::move(on_error)](int gpu, int64_t xid) {
        Error error;
        error.uuid = gpus_[gpu].status.uuid();
        const XidMeaning meaning = MeaningOfXid(xid);
        error.is_of_hardware = meaning.is_of_hardware;
        error.error.set_xid(xid);
        error.error.set_message(meaning.text);
        *error.error.mutable_time() = google::protobuf::util::TimeUtil::GetCurrentTime();
        {
          MutexLock lock(&mutex_);
          errors_[error.uuid] = error.error;
        }
        on_error(error);
      });
}

void GpuMonitor::Stop() {
  questions_.Stop();
  StopWatching();
}

absl::Status GpuMonitor::Refresh(v1::GpuStatus* status, absl::Duration limit) const {
  {
    MutexLock lock(&mutex_);
    const auto error = errors_.find(status->uuid());
    if (error != errors_.end()) *status->mutable_last_error() = error->second;
  }
  for (size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].status.uuid() != status->uuid()) continue;
    Nvml::ClearWhatChanges(status);
    auto refreshed = std::make_shared<v1::GpuStatus>(*status);
    TANDEM_RETURN_IF_ERROR(questions_.Ask(
        [nvml = nvml_, gpu = handles_[i], refreshed] { return nvml->Refresh(gpu, refreshed.get()); }, limit));
    *status = *refreshed;
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("there is no GPU with the UUID ", status->uuid()));
}

}  // namespace tandem
