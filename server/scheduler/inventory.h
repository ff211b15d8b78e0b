#ifndef TANDEM_SERVER_SCHEDULER_INVENTORY_H_
#define TANDEM_SERVER_SCHEDULER_INVENTORY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/mutex.h"
#include "tandem/v1/device.pb.h"

namespace tandem {

// Devices and the jobs that hold them: a device has at most one job, a job all of its devices or none.
// Thread-safe.
class Inventory {
 public:
  // Names must be unique.
  explicit Inventory(std::vector<v1::Device> devices) : devices_(std::move(devices)) {}
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  // All devices, `job` set for those that are held.
  std::vector<v1::Device> Devices() const;

  // Gives the named devices ("devices/cpu:0") to a job, all or none. INVALID_ARGUMENT: none is named, or one
  // twice. NOT_FOUND: no such device. FAILED_PRECONDITION: one is held, or the job holds some already.
  absl::Status Acquire(const std::string& job_id, const std::vector<std::string>& devices);

  // Frees what a job holds. Returns whether it held anything.
  bool Release(const std::string& job_id);

 private:
  mutable Mutex mutex_;
  std::vector<v1::Device> devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_INVENTORY_H_
