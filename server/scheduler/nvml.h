#ifndef TANDEM_SERVER_SCHEDULER_NVML_H_
#define TANDEM_SERVER_SCHEDULER_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/scheduler/nvml_functions.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// NVIDIA's management library (NVML), which comes with the driver and is loaded at run time. So building, and
// running without GPUs, needs no NVIDIA software. Thread-safe.
class Nvml {
 public:
  // The constant properties of a GPU.
  struct Gpu {
    NvmlHandle handle = nullptr;
    // For example "NVIDIA H200".
    std::string model;
    // CUDA's compute capability.
    int major = 0;
    int minor = 0;
    // True if the GPU is split into instances (MIG).
    bool is_split = false;
    // True if the GPU's compute mode forbids computing.
    bool is_prohibited = false;
    // Without the variable fields.
    v1::GpuStatus status;
  };

  // Loads the library at `path`, or from the usual places if empty. NOT_FOUND: no library, driver or GPU
  // exists. FAILED_PRECONDITION with the reason: the library cannot be used.
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& path);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // Returns for example "580.95.05"; empty if unknown.
  const std::string& driver_version() const { return driver_version_; }
  // Returns the newest CUDA version that the driver supports, for example 13000 for 13.0; 0 if unknown.
  int cuda_version() const { return cuda_version_; }

  absl::StatusOr<int> CountGpus() const;
  // Returns GPU `index`, in the order of the PCI bus. An error if the GPU cannot be used.
  absl::StatusOr<Gpu> Describe(int index) const;
  static void ClearWhatChanges(v1::GpuStatus* status);
  // Updates the variable fields. Clears fields that the driver does not report. An error if the GPU no longer
  // answers.
  absl::Status Refresh(NvmlHandle gpu, v1::GpuStatus* status) const;

  // The active NVLinks of a GPU.
  struct NvLinks {
    // The PCI bus ids (GpuStatus.pci_bus_id) of directly connected GPUs, one entry per link.
    std::vector<std::string> to_gpus;
    // The number of links to a switch.
    int to_switches = 0;
  };
  NvLinks LinksOf(NvmlHandle gpu) const;
  v1::GpuLink::Path PathBetween(NvmlHandle gpu, NvmlHandle other) const;
  // Returns true if `gpu` may read the memory of `other`; false if unknown.
  bool ReadsMemoryOf(NvmlHandle gpu, NvmlHandle other) const;

  // The driver's reports of GPU errors ("XIDs"). Only one thread may use it. Must not outlive its Nvml.
  class ErrorEvents {
   public:
    struct Error {
      NvmlHandle gpu = nullptr;
      int64_t xid = 0;
    };
    ~ErrorEvents();
    ErrorEvents(const ErrorEvents&) = delete;
    ErrorEvents& operator=(const ErrorEvents&) = delete;
    // Blocks for the next error; nullopt if none arrives within `limit`. UNAVAILABLE: a GPU no longer
    // answers, and no errors arrive until ListenForErrors is called again.
    absl::StatusOr<std::optional<Error>> Await(absl::Duration limit) const;
    // Returns false if a GPU that may report errors could not be registered now.
    bool is_whole() const { return is_whole_; }

   private:
    friend class Nvml;
    ErrorEvents(const Nvml* nvml, NvmlEventSet set) : nvml_(nvml), set_(set) {}
    const Nvml* const nvml_;
    const NvmlEventSet set_;
    bool is_whole_ = true;
  };
  // Listens to the GPUs in `gpus` that report errors. UNIMPLEMENTED if none ever does, or if the library is
  // too old. Other errors may be temporary.
  absl::StatusOr<std::unique_ptr<ErrorEvents>> ListenForErrors(const std::vector<NvmlHandle>& gpus) const;

 private:
  Nvml(void* library, const NvmlFunctions& functions) : library_(library), functions_(functions) {}

  absl::Status ToStatus(NvmlReturn result) const;

  void* const library_;
  const NvmlFunctions functions_;
  std::string driver_version_;
  int cuda_version_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_NVML_H_
