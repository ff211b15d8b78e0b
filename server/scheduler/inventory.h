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

// What a job holds of its devices.
struct Lease {
  // "devices/cpu:0"; each once.
  std::vector<std::string> devices;
  // The part of each device, above 0 and at most 1; below 1 others may hold the rest.
  double share = 1;
  // Planned on each device.
  int64_t memory_bytes = 0;
};

// Devices, whether they take jobs, and the jobs that hold them. A job has all of its devices or none; a
// device has one job, or several whose shares and planned memory fit it. Thread-safe.
class Inventory {
 public:
  // Names must be unique. Those without a state are ACTIVE.
  explicit Inventory(std::vector<v1::Device> devices);
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  // All devices with the jobs that hold them.
  std::vector<v1::Device> Devices() const;

  // What a device is known by over restarts of the daemon: a GPU's UUID, as another may have its number then;
  // otherwise its name. `name` where there is no such device.
  std::string IdentityOf(const std::string& name) const;

  // Gives devices to a job, all or none, whatever their state. INVALID_ARGUMENT: none is named, or one twice,
  // or the share is none. NOT_FOUND: no such device. FAILED_PRECONDITION: one has no room, or the job holds
  // some already.
  absl::Status Acquire(const std::string& job_id, const Lease& lease);

  // Frees what a job holds, and returns the names; empty where it held nothing.
  std::vector<std::string> Release(const std::string& job_id);

  // Sets whether a device takes jobs, why not, and how often it has failed. NOT_FOUND: no such device.
  absl::StatusOr<v1::Device> SetState(const std::string& device, v1::DeviceState state,
                                      const std::string& message, int faults);

 private:
  struct Held {
    v1::Device device;
    // As the device's `jobs`.
    std::vector<Lease> leases;
  };
  Held* Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Describe(Held* held);

  mutable Mutex mutex_;
  std::vector<Held> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_INVENTORY_H_
