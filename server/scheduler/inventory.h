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

// A job's claim on its devices.
struct Lease {
  // For example "devices/cpu:0"; no repetition.
  std::vector<std::string> devices;
  // The share of each device, above 0 and at most 1. Below 1, other jobs may hold the rest.
  double share = 1;
  // The planned memory on each device.
  int64_t memory_bytes = 0;
};

// The devices, their states, and the jobs that hold them. A job has all of its devices or none. Several jobs
// share a device if their shares and planned memory fit. Thread-safe.
class Inventory {
 public:
  // Names must be unique. A device without a state is ACTIVE.
  explicit Inventory(std::vector<v1::Device> devices);
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  // Returns all devices with their jobs.
  std::vector<v1::Device> Devices() const;

  // Returns a device's identity over restarts of the daemon. For a GPU it is the UUID, because GPUs may be
  // renumbered. Otherwise it is the name. Returns `name` if no such device exists.
  std::string IdentityOf(const std::string& name) const;

  // Gives devices to a job, all or none, in any state. INVALID_ARGUMENT: no device, a repeated device, or an
  // invalid share. NOT_FOUND: no such device. FAILED_PRECONDITION: a device has no room, or the job already
  // holds devices.
  absl::Status Acquire(const std::string& job_id, const Lease& lease);

  // Frees a job's devices and returns their names; empty if none.
  std::vector<std::string> Release(const std::string& job_id);

  // Sets a device's state, its reason and its number of faults. NOT_FOUND: no such device.
  absl::StatusOr<v1::Device> SetState(const std::string& device, v1::DeviceState state,
                                      const std::string& message, int faults);

 private:
  struct Held {
    v1::Device device;
    // One lease per entry of the device's `jobs`.
    std::vector<Lease> leases;
  };
  Held* Find(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Describe(Held* held);

  mutable Mutex mutex_;
  std::vector<Held> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_INVENTORY_H_
