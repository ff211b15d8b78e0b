#ifndef TANDEM_SERVER_SCHEDULER_INVENTORY_H_
#define TANDEM_SERVER_SCHEDULER_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// What a machine has for jobs.
struct HostResources {
  // Cores that this process may use.
  int cores = 1;
  // "AMD EPYC ..."; may be empty.
  std::string cpu_model;
  // Bytes of memory that this process may use.
  int64_t memory_bytes = 0;
};

// Looks at the machine, control groups and CPU affinity included.
HostResources ProbeHost();

// How the machine is cut into devices.
struct DeviceOptions {
  // CPU devices; 0: one a core.
  int cpu_devices = 0;
  // Threads of each CPU device; 0: the cores split evenly, at least 1 each.
  int cpu_threads = 0;
  // Devices of the kind REFERENCE.
  int reference_devices = 0;
  // Memory that all devices together may plan for, in bytes; 0: nine tenths of the machine's.
  int64_t memory_bytes = 0;
};

// The devices, by kind, then index, each with an equal part of the memory. Pure.
// INVALID_ARGUMENT: a negative option.
absl::StatusOr<std::vector<v1::Device>> MakeDevices(const DeviceOptions& options, const HostResources& host);

// Devices and the jobs that hold them: a device has at most one job, a job all of its devices or none.
// Thread-safe.
class Inventory {
 public:
  // Names must be unique.
  explicit Inventory(std::vector<v1::Device> devices);
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  // All devices, `job` set for those that are held.
  std::vector<v1::Device> Devices() const;

  // Gives the named devices to a job, all or none. NOT_FOUND: no such device. FAILED_PRECONDITION: one is
  // held, or named twice, or the job holds some already. INVALID_ARGUMENT: none is named.
  absl::Status Acquire(const std::string& job_id, const std::vector<std::string>& devices);

  // Frees what a job holds. Returns whether it held anything.
  bool Release(const std::string& job_id);

 private:
  mutable Mutex mutex_;
  std::vector<v1::Device> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_INVENTORY_H_
