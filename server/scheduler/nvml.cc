#include "server/scheduler/nvml.h"

#include <dlfcn.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// First the loader's places (LD_LIBRARY_PATH, ld.so.conf), then the places of the driver's libraries in
// containers and WSL, which the loader may not know.
constexpr const char* kUsualPlaces[] = {
    "libnvidia-ml.so.1",
    "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
    "/usr/lib/wsl/lib/libnvidia-ml.so.1",
};

absl::StatusOr<void*> Open(const std::string& path) {
  const std::vector<std::string> places =
      path.empty() ? std::vector<std::string>(std::begin(kUsualPlaces), std::end(kUsualPlaces))
                   : std::vector<std::string>{path};
  for (const std::string& place : places) {
    void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    const char* const error = dlerror();
    const std::string why = error == nullptr ? "" : error;
    if (!path.empty() || !absl::StrContains(why, "No such file")) {
      return absl::FailedPreconditionError(absl::StrCat("cannot load ", place, ": ", why));
    }
  }
  return absl::NotFoundError("there is no libnvidia-ml.so.1, which comes with NVIDIA's driver");
}

// Looks up functions by their names in the library.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    if (*function == nullptr && missing_.empty()) missing_ = name;
  }
  template <typename Function>
  void FindIfThere(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
  }
  // The first missing function.
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

absl::StatusOr<NvmlFunctions> FunctionsOf(void* library) {
  NvmlFunctions functions;
  Symbols symbols(library);
  symbols.Find("nvmlInit_v2", &functions.Init_v2);
  symbols.Find("nvmlShutdown", &functions.Shutdown);
  symbols.Find("nvmlErrorString", &functions.ErrorString);
  symbols.Find("nvmlSystemGetDriverVersion", &functions.SystemGetDriverVersion);
  symbols.Find("nvmlSystemGetCudaDriverVersion", &functions.SystemGetCudaDriverVersion);
  symbols.Find("nvmlDeviceGetCount_v2", &functions.DeviceGetCount_v2);
  symbols.Find("nvmlDeviceGetHandleByIndex_v2", &functions.DeviceGetHandleByIndex_v2);
  symbols.Find("nvmlDeviceGetName", &functions.DeviceGetName);
  symbols.Find("nvmlDeviceGetUUID", &functions.DeviceGetUUID);
  symbols.Find("nvmlDeviceGetPciInfo_v3", &functions.DeviceGetPciInfo_v3);
  symbols.Find("nvmlDeviceGetMemoryInfo", &functions.DeviceGetMemoryInfo);
  symbols.Find("nvmlDeviceGetCudaComputeCapability", &functions.DeviceGetCudaComputeCapability);
  symbols.FindIfThere("nvmlDeviceGetMigMode", &functions.DeviceGetMigMode);
  symbols.FindIfThere("nvmlDeviceGetComputeMode", &functions.DeviceGetComputeMode);
  symbols.FindIfThere("nvmlDeviceGetUtilizationRates", &functions.DeviceGetUtilizationRates);
  symbols.FindIfThere("nvmlDeviceGetTemperature", &functions.DeviceGetTemperature);
  symbols.FindIfThere("nvmlDeviceGetPowerUsage", &functions.DeviceGetPowerUsage);
  symbols.FindIfThere("nvmlDeviceGetEnforcedPowerLimit", &functions.DeviceGetEnforcedPowerLimit);
  symbols.FindIfThere("nvmlDeviceGetTotalEccErrors", &functions.DeviceGetTotalEccErrors);
  symbols.FindIfThere("nvmlEventSetCreate", &functions.EventSetCreate);
  symbols.FindIfThere("nvmlEventSetFree", &functions.EventSetFree);
  symbols.FindIfThere("nvmlEventSetWait_v2", &functions.EventSetWait_v2);
  symbols.FindIfThere("nvmlDeviceRegisterEvents", &functions.DeviceRegisterEvents);
  symbols.FindIfThere("nvmlDeviceGetTopologyCommonAncestor", &functions.DeviceGetTopologyCommonAncestor);
  symbols.FindIfThere("nvmlDeviceGetP2PStatus", &functions.DeviceGetP2PStatus);
  symbols.FindIfThere("nvmlDeviceGetNvLinkState", &functions.DeviceGetNvLinkState);
  symbols.FindIfThere("nvmlDeviceGetNvLinkRemotePciInfo_v2", &functions.DeviceGetNvLinkRemotePciInfo_v2);
  symbols.FindIfThere("nvmlDeviceGetNvLinkRemoteDeviceType", &functions.DeviceGetNvLinkRemoteDeviceType);
  if (symbols.missing().empty()) return functions;
  return absl::FailedPreconditionError(absl::StrCat("cannot use the driver's library: it has no ",
                                                    symbols.missing(), "; install a newer driver"));
}

// Returns true if an optional function exists and succeeds.
template <typename... Parameters, typename... Arguments>
bool Ask(NvmlReturn (*function)(Parameters...), Arguments... arguments) {
  return function != nullptr && function(arguments...) == kNvmlSuccess;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Load(const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(void* const library, Open(path));
  const absl::StatusOr<NvmlFunctions> functions = FunctionsOf(library);
  if (!functions.ok()) {
    dlclose(library);
    return functions.status();
  }
  if (const NvmlReturn result = functions->Init_v2(); result != kNvmlSuccess) {
    const std::string why = functions->ErrorString(result);
    dlclose(library);
    switch (result) {
      case kNvmlDriverNotLoaded:
      case kNvmlGpuNotFound:
        return absl::NotFoundError(why);
      case kNvmlVersionMismatch:
        return absl::FailedPreconditionError(
            absl::StrCat("cannot use the driver: ", why,
                         ": the driver was updated after the machine started; restart the machine"));
      case kNvmlNoPermission:
        return absl::FailedPreconditionError(absl::StrCat(
            "cannot use the driver: ", why, "; let this user open /dev/nvidiactl and /dev/nvidia*"));
      default:
        return absl::FailedPreconditionError(
            absl::StrCat("cannot use the driver: ", why, "; check that nvidia-smi works"));
    }
  }
  std::unique_ptr<Nvml> nvml(new Nvml(library, *functions));
  char version[kNvmlTextSize] = "";
  if (functions->SystemGetDriverVersion(version, sizeof(version)) == kNvmlSuccess) {
    nvml->driver_version_ = version;
  }
  int cuda_version = 0;
  if (functions->SystemGetCudaDriverVersion(&cuda_version) == kNvmlSuccess) {
    nvml->cuda_version_ = cuda_version;
  }
  return nvml;
}

Nvml::~Nvml() {
  functions_.Shutdown();
  dlclose(library_);
}

absl::Status Nvml::ToStatus(NvmlReturn result) const {
  if (result == kNvmlSuccess) return absl::OkStatus();
  return absl::UnavailableError(functions_.ErrorString(result));
}

absl::StatusOr<int> Nvml::CountGpus() const {
  unsigned count = 0;
  TANDEM_RETURN_IF_ERROR(ToStatus(functions_.DeviceGetCount_v2(&count)));
  return static_cast<int>(count);
}

absl::StatusOr<Nvml::Gpu> Nvml::Describe(int index) const {
  Gpu gpu;
  TANDEM_RETURN_IF_ERROR(ToStatus(functions_.DeviceGetHandleByIndex_v2(index, &gpu.handle)));
  char text[kNvmlTextSize] = "";
  TANDEM_RETURN_IF_ERROR(ToStatus(functions_.DeviceGetUUID(gpu.handle, text, sizeof(text))));
  gpu.status.set_uuid(text);
  TANDEM_RETURN_IF_ERROR(ToStatus(functions_.DeviceGetName(gpu.handle, text, sizeof(text))));
  gpu.model = text;
  TANDEM_RETURN_IF_ERROR(
      ToStatus(functions_.DeviceGetCudaComputeCapability(gpu.handle, &gpu.major, &gpu.minor)));
  gpu.status.set_compute_capability(absl::StrCat(gpu.major, ".", gpu.minor));
  NvmlMemory memory = {};
  TANDEM_RETURN_IF_ERROR(ToStatus(functions_.DeviceGetMemoryInfo(gpu.handle, &memory)));
  gpu.status.set_total_memory_bytes(static_cast<int64_t>(memory.total));
  NvmlPciInfo pci = {};
  if (functions_.DeviceGetPciInfo_v3(gpu.handle, &pci) == kNvmlSuccess) gpu.status.set_pci_bus_id(pci.bus_id);
  gpu.status.set_driver_version(driver_version_);
  unsigned split = 0;
  unsigned split_later = 0;
  gpu.is_split = Ask(functions_.DeviceGetMigMode, gpu.handle, &split, &split_later) && split != 0;
  int mode = 0;
  gpu.is_prohibited =
      Ask(functions_.DeviceGetComputeMode, gpu.handle, &mode) && mode == kNvmlComputeProhibited;
  return gpu;
}

void Nvml::ClearWhatChanges(v1::GpuStatus* status) {
  status->clear_used_memory_bytes();
  status->clear_utilization_percent();
  status->clear_temperature_celsius();
  status->clear_power_watts();
  status->clear_power_limit_watts();
  status->clear_ecc_corrected_errors();
  status->clear_ecc_uncorrected_errors();
}

absl::Status Nvml::Refresh(NvmlHandle gpu, v1::GpuStatus* status) const {
  ClearWhatChanges(status);
  // All GPUs support this call, so a failure is the GPU's.
  NvmlMemory memory = {};
  TANDEM_RETURN_IF_ERROR(ToStatus(functions_.DeviceGetMemoryInfo(gpu, &memory)));
  status->set_used_memory_bytes(static_cast<int64_t>(memory.used));
  NvmlUtilization utilization = {};
  if (Ask(functions_.DeviceGetUtilizationRates, gpu, &utilization)) {
    status->set_utilization_percent(static_cast<int>(utilization.gpu));
  }
  unsigned value = 0;
  if (Ask(functions_.DeviceGetTemperature, gpu, kNvmlTemperatureOfDie, &value)) {
    status->set_temperature_celsius(static_cast<int>(value));
  }
  if (Ask(functions_.DeviceGetPowerUsage, gpu, &value)) status->set_power_watts(value / 1000.0);
  if (Ask(functions_.DeviceGetEnforcedPowerLimit, gpu, &value)) status->set_power_limit_watts(value / 1000.0);
  unsigned long long errors = 0;
  if (Ask(functions_.DeviceGetTotalEccErrors, gpu, kNvmlCorrectedErrors, kNvmlErrorsSinceTheDriverCame,
          &errors)) {
    status->set_ecc_corrected_errors(static_cast<int64_t>(errors));
  }
  if (Ask(functions_.DeviceGetTotalEccErrors, gpu, kNvmlUncorrectedErrors, kNvmlErrorsSinceTheDriverCame,
          &errors)) {
    status->set_ecc_uncorrected_errors(static_cast<int64_t>(errors));
  }
  return absl::OkStatus();
}

Nvml::NvLinks Nvml::LinksOf(NvmlHandle gpu) const {
  NvLinks links;
  for (unsigned link = 0; link < kNvmlMostLinks; ++link) {
    int is_active = 0;
    if (!Ask(functions_.DeviceGetNvLinkState, gpu, link, &is_active) || is_active == 0) continue;
    int type = 0;
    NvmlPciInfo remote = {};
    if (Ask(functions_.DeviceGetNvLinkRemoteDeviceType, gpu, link, &type) && type == kNvmlRemoteIsSwitch) {
      ++links.to_switches;
    } else if (Ask(functions_.DeviceGetNvLinkRemotePciInfo_v2, gpu, link, &remote)) {
      links.to_gpus.emplace_back(remote.bus_id);
    }
  }
  return links;
}

v1::GpuLink::Path Nvml::PathBetween(NvmlHandle gpu, NvmlHandle other) const {
  int level = 0;
  if (!Ask(functions_.DeviceGetTopologyCommonAncestor, gpu, other, &level)) {
    return v1::GpuLink::PATH_UNSPECIFIED;
  }
  switch (level) {
    case kNvmlSameBoard:
      return v1::GpuLink::PATH_SAME_BOARD;
    case kNvmlOneSwitch:
      return v1::GpuLink::PATH_PCIE_SWITCH;
    case kNvmlSwitches:
      return v1::GpuLink::PATH_PCIE_SWITCHES;
    case kNvmlHostBridge:
      return v1::GpuLink::PATH_HOST_BRIDGE;
    case kNvmlNumaNode:
      return v1::GpuLink::PATH_NUMA_NODE;
    case kNvmlSystem:
      return v1::GpuLink::PATH_SYSTEM;
    default:
      return v1::GpuLink::PATH_UNSPECIFIED;
  }
}

bool Nvml::ReadsMemoryOf(NvmlHandle gpu, NvmlHandle other) const {
  int status = 0;
  return Ask(functions_.DeviceGetP2PStatus, gpu, other, kNvmlReadsOfPeers, &status) &&
         status == kNvmlPeerIsReached;
}

absl::StatusOr<std::unique_ptr<Nvml::ErrorEvents>> Nvml::ListenForErrors(
    const std::vector<NvmlHandle>& gpus) const {
  if (functions_.EventSetWait_v2 == nullptr || functions_.EventSetFree == nullptr ||
      functions_.EventSetCreate == nullptr || functions_.DeviceRegisterEvents == nullptr) {
    return absl::UnimplementedError("the driver's library reports no errors");
  }
  NvmlEventSet set = nullptr;
  const NvmlReturn made = functions_.EventSetCreate(&set);
  if (made == kNvmlNotSupported) return absl::UnimplementedError("the driver reports no errors");
  TANDEM_RETURN_IF_ERROR(ToStatus(made));
  std::unique_ptr<ErrorEvents> events(new ErrorEvents(this, set));
  bool any = false;
  absl::Status refused;
  for (const NvmlHandle gpu : gpus) {
    const NvmlReturn result = functions_.DeviceRegisterEvents(gpu, kNvmlXid, set);
    any = any || result == kNvmlSuccess;
    // A GPU without error reports is no error. Another failure may be temporary.
    if (result != kNvmlSuccess && result != kNvmlNotSupported) refused = ToStatus(result);
  }
  if (!any && refused.ok()) return absl::UnimplementedError("the driver reports no errors for these GPUs");
  if (!any) return refused;
  events->is_whole_ = refused.ok();
  return events;
}

Nvml::ErrorEvents::~ErrorEvents() { nvml_->functions_.EventSetFree(set_); }

absl::StatusOr<std::optional<Nvml::ErrorEvents::Error>> Nvml::ErrorEvents::Await(absl::Duration limit) const {
  NvmlEvent event = {};
  const NvmlReturn result = nvml_->functions_.EventSetWait_v2(
      set_, &event, static_cast<unsigned>(absl::ToInt64Milliseconds(limit)));
  if (result == kNvmlTimeout) return std::nullopt;
  TANDEM_RETURN_IF_ERROR(nvml_->ToStatus(result));
  if (event.type != kNvmlXid) return std::nullopt;
  return Error{event.device, static_cast<int64_t>(event.data)};
}

}  // namespace tandem
