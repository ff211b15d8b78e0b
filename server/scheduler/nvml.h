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

// NVIDIA's management library, which comes with the driver and is looked for when a program runs: nothing of
// NVIDIA's is needed to build, or to run without GPUs. Thread-safe.
class Nvml {
 public:
  // A GPU: what does not change.
  struct Gpu {
    NvmlHandle handle = nullptr;
    // "NVIDIA H200".
    std::string model;
    // CUDA's compute capability.
    int major = 0;
    int minor = 0;
    // It is split into instances (MIG).
    bool is_split = false;
    // Its compute mode lets no program compute on it.
    bool is_prohibited = false;
    // Without what changes.
    v1::GpuStatus status;
  };

  // Loads the library at `path`; where that is empty, from the usual places. NOT_FOUND: there is none, or no
  // driver and no GPU that it could speak of. FAILED_PRECONDITION: it cannot be used, and why.
  static absl::StatusOr<std::unique_ptr<Nvml>> Load(const std::string& path);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  // "580.95.05"; empty where it does not say.
  const std::string& driver_version() const { return driver_version_; }
  // The newest version of CUDA that the driver runs, 13000 for 13.0; 0 where it does not say.
  int cuda_version() const { return cuda_version_; }

  absl::StatusOr<int> CountGpus() const;
  // GPU `index` in the order of the PCI bus. An error where it cannot be used.
  absl::StatusOr<Gpu> Describe(int index) const;
  static void ClearWhatChanges(v1::GpuStatus* status);
  // Brings up to date what changes; what the driver does not say is cleared. An error where the GPU does not
  // answer any more.
  absl::Status Refresh(NvmlHandle gpu, v1::GpuStatus* status) const;

  // A GPU's NVLinks that are up.
  struct NvLinks {
    // Of those that lead to another GPU, its place on the PCI bus, as GpuStatus.pci_bus_id; once for each.
    std::vector<std::string> to_gpus;
    // Those that lead to a switch.
    int to_switches = 0;
  };
  NvLinks LinksOf(NvmlHandle gpu) const;
  v1::GpuLink::Path PathBetween(NvmlHandle gpu, NvmlHandle other) const;
  // Whether `gpu` may read the memory of `other`; false where the driver does not say.
  bool ReadsMemoryOf(NvmlHandle gpu, NvmlHandle other) const;

  // Errors ("XIDs") of GPUs, as the driver reports them. For one thread; no longer than its Nvml.
  class ErrorEvents {
   public:
    struct Error {
      NvmlHandle gpu = nullptr;
      int64_t xid = 0;
    };
    ~ErrorEvents();
    ErrorEvents(const ErrorEvents&) = delete;
    ErrorEvents& operator=(const ErrorEvents&) = delete;
    // Waits for the next one; nothing where none comes within `limit`. UNAVAILABLE: a GPU does not answer any
    // more, and none is heard of until they are asked for anew.
    absl::StatusOr<std::optional<Error>> Await(absl::Duration limit) const;
    // False: a GPU that may report errors could not be listened to now.
    bool is_whole() const { return is_whole_; }

   private:
    friend class Nvml;
    ErrorEvents(const Nvml* nvml, NvmlEventSet set) : nvml_(nvml), set_(set) {}
    const Nvml* const nvml_;
    const NvmlEventSet set_;
    bool is_whole_ = true;
  };
  // Those of `gpus` that report any. UNIMPLEMENTED where none ever does, or the library is too old; other
  // errors may pass.
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
