#ifndef TANDEM_SERVER_SCHEDULER_DEVICE_RECORDS_H_
#define TANDEM_SERVER_SCHEDULER_DEVICE_RECORDS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/scheduler/inventory.h"
#include "server/store/records.h"
#include "server/store/store.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The states and faults of devices, kept over restarts of the daemon by devices' identities. Each change also
// sets the inventory's device. A device is excluded after crashes of 2 jobs in a row, or of 4 jobs if all are
// one user's. Thread-compatible.
class DeviceRecords {
 public:
  // Both must outlive this object.
  DeviceRecords(Inventory* inventory, Store* store) : inventory_(inventory), store_(store) {}

  // Takes the records of an earlier daemon. Devices may be missing in this daemon.
  void Restore(const std::vector<StoredDevice>& records);

  // Counts a crash of a job's worker on a device, and stores the count. Crashes of one job in a row count
  // once. `has_several_users`: not only this job's user has used devices.
  void CountFault(const std::string& device, const v1::Job& faulty, bool has_several_users);
  // A job has succeeded on the device, so earlier crashes may have been the jobs' faults. An excluded device
  // stays excluded.
  void ForgetFaults(const std::string& device);

  // Sets a device's state and its reason. ACTIVE clears the faults. Returns the record, which the caller must
  // store. NOT_FOUND: no such device. FAILED_PRECONDITION: the device is EXCLUDED and should become DRAINED.
  absl::StatusOr<StoredDevice> SetState(const std::string& device, v1::DeviceState state,
                                        const std::string& reason);

 private:
  void Put(const std::string& device, const StoredDevice& record);

  Inventory* const inventory_;
  Store* const store_;
  // By identity. Only devices that are or were out of service or faulty.
  std::map<std::string, StoredDevice> records_;
  // The users whose jobs crashed on each device since this daemon's start, by identity.
  std::map<std::string, std::set<std::string>> faulty_users_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_SCHEDULER_DEVICE_RECORDS_H_
