#include "engine/backends/cuda/driver/cuda_errors.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem::cuda {
namespace {

// Values of cudaError_t in driver_types.h.
constexpr int kMemoryAllocation = 2;
constexpr int kInsufficientDriver = 35;
constexpr int kNoDevice = 100;
constexpr int kPeerAccessAlreadyEnabled = 704;
constexpr int kSystemDriverMismatch = 803;
constexpr int kCompatNotSupportedOnDevice = 804;

constexpr int kFatal[] = {
    214,  // cudaErrorECCUncorrectable
    220,  // cudaErrorNvlinkUncorrectable
    226,  // cudaErrorContained
    700,  // cudaErrorIllegalAddress
    702,  // cudaErrorLaunchTimeout
    710,  // cudaErrorAssert
    714,  // cudaErrorHardwareStackError
    715,  // cudaErrorIllegalInstruction
    716,  // cudaErrorMisalignedAddress
    717,  // cudaErrorInvalidAddressSpace
    718,  // cudaErrorInvalidPc
    719,  // cudaErrorLaunchFailure
    721,  // cudaErrorTensorMemoryLeak
    810,  // cudaErrorMpsClientTerminated
    911,  // cudaErrorExternalDevice
    999,  // cudaErrorUnknown
};

// Returns for example "13.0".
std::string VersionText(int version) { return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10); }

}  // namespace

bool LeavesProcessUnusable(int error) {
  return std::find(std::begin(kFatal), std::end(kFatal), error) != std::end(kFatal);
}

absl::Status StatusOf(const CudaFailure& failure) {
  const std::string what = absl::StrCat(failure.call, ": ", failure.name, ": ", failure.description);
  if (failure.error == kMemoryAllocation) return absl::ResourceExhaustedError(what);
  if (!LeavesProcessUnusable(failure.error)) {
    return absl::InternalError(absl::StrCat("a call of CUDA failed: ", what));
  }
  return absl::InternalError(
      absl::StrCat("cuda: ", what, "; this process can use its GPU no more, and has to end"));
}

absl::StatusOr<bool> IsPeerReached(const CudaFailure& enabled) {
  if (LeavesProcessUnusable(enabled.error)) return StatusOf(enabled);
  return enabled.error == 0 || enabled.error == kPeerAccessAlreadyEnabled;
}

absl::Status WhyNoGpu(const CudaFailure& failure, const CudaSystem& system) {
  const std::string runtime = VersionText(system.runtime_version);
  const int major = system.runtime_version / 1000;
  if (failure.error == kInsufficientDriver && system.driver_version == 0) {
    return absl::UnavailableError(absl::StrCat(
        "there is no driver of NVIDIA's here (libcuda.so.1), which CUDA needs: install one that runs CUDA ",
        major, "; in a container, start it with the machine's GPUs (--gpus all)"));
  }
  if (failure.error == kInsufficientDriver) {
    return absl::UnavailableError(
        absl::StrCat("the driver runs CUDA up to ", VersionText(system.driver_version),
                     ", and this program was built with CUDA ", runtime, ": install a newer driver"));
  }
  if (failure.error == kSystemDriverMismatch || failure.error == kCompatNotSupportedOnDevice) {
    return absl::UnavailableError(absl::StrCat(
        "the driver's libraries are not those of the running driver (", failure.name,
        "): start the machine again after a new driver was installed, and take CUDA's 'compat' folder out of "
        "LD_LIBRARY_PATH"));
  }
  if (failure.error != 0 && failure.error != kNoDevice) {
    return absl::UnavailableError(absl::StrCat("CUDA cannot be used: ", failure.call, ": ", failure.name,
                                               ": ", failure.description, "; does nvidia-smi work?"));
  }
  if (system.visible_devices.has_value()) {
    return absl::UnavailableError(
        absl::StrCat("CUDA sees no GPU: CUDA_VISIBLE_DEVICES is '", *system.visible_devices,
                     "', which names none that is here; leave it out, or name GPUs as nvidia-smi -L does"));
  }
  return absl::UnavailableError(
      "CUDA sees no GPU, and the driver is there: does nvidia-smi list one? In a container, start it with "
      "the "
      "machine's GPUs (--gpus all)");
}

}  // namespace tandem::cuda
