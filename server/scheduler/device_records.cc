#include "server/scheduler/device_records.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// The number of jobs whose workers crash on a device, without a success in between, before the device is
// excluded.
constexpr int kMaxFaults = 2;
// The same if all crashes are one user's and other users have also used devices. A worker can crash on
// purpose, and one user's jobs must not quickly take a device from everybody.
constexpr int kMaxFaultsOfOneUser = 4;

}  // namespace

void DeviceRecords::Restore(const std::vector<StoredDevice>& records) {
  for (const StoredDevice& record : records) records_[record.name] = record;
  for (const v1::Device& device : inventory_->Devices()) {
    const auto found = records_.find(inventory_->IdentityOf(device.name()));
    if (found == records_.end()) continue;
    const StoredDevice& record = found->second;
    inventory_->SetState(device.name(), record.state, record.message, record.faults).status().IgnoreError();
  }
}

void DeviceRecords::CountFault(const std::string& device, const v1::Job& faulty, bool has_several_users) {
  const std::string& job = faulty.name();
  const std::string identity = inventory_->IdentityOf(device);
  StoredDevice& record = records_[identity];
  record.name = identity;
  // Repeated crashes of one job probably are the job's fault.
  if (record.last_faulty_job == job) return;
  record.last_faulty_job = job;
  std::set<std::string>& users = faulty_users_[identity];
  // The users of crashes before the daemon's start are unknown.
  if (record.faults > 0 && users.empty()) users.insert("");
  users.insert(faulty.user());
  ++record.faults;
  const bool is_one_of_several = users.size() == 1 && has_several_users;
  if (record.faults >= (is_one_of_several ? kMaxFaultsOfOneUser : kMaxFaults) &&
      record.state != v1::DEVICE_STATE_EXCLUDED) {
    record.state = v1::DEVICE_STATE_EXCLUDED;
    record.message = absl::StrCat(
        "The workers of ", record.faults, " jobs crashed on it, the last that of \"", job,
        "\". Look at the machine, then: tandem devices resume ", device.substr(device.find('/') + 1));
    spdlog::error("device excluded device={}: {}", device, record.message);
  }
  Put(device, record);
}

void DeviceRecords::ForgetFaults(const std::string& device) {
  const auto found = records_.find(inventory_->IdentityOf(device));
  if (found == records_.end()) return;
  StoredDevice& record = found->second;
  if (record.faults == 0 || record.state == v1::DEVICE_STATE_EXCLUDED) return;
  record.faults = 0;
  record.last_faulty_job.clear();
  faulty_users_.erase(record.name);
  Put(device, record);
}

void DeviceRecords::Put(const std::string& device, const StoredDevice& record) {
  inventory_->SetState(device, record.state, record.message, record.faults).status().IgnoreError();
  store_->Write([record](Transaction& transaction) { return transaction.PutDevice(record); },
                [device](const absl::Status& status) {
                  if (!status.ok()) {
                    spdlog::warn("cannot record the faults of {}: {}", device, status.ToString());
                  }
                });
}

absl::StatusOr<StoredDevice> DeviceRecords::SetState(const std::string& device, v1::DeviceState state,
                                                     const std::string& reason) {
  const std::string identity = inventory_->IdentityOf(device);
  StoredDevice record;
  if (const auto known = records_.find(identity); known != records_.end()) record = known->second;
  if (state == v1::DEVICE_STATE_DRAINED && record.state == v1::DEVICE_STATE_EXCLUDED) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot drain \"", device, "\": it is excluded; resume it first"));
  }
  record.name = identity;
  record.state = state;
  record.message = reason;
  if (state == v1::DEVICE_STATE_ACTIVE) {
    record.faults = 0;
    record.last_faulty_job.clear();
  }
  TANDEM_RETURN_IF_ERROR(inventory_->SetState(device, state, reason, record.faults).status());
  if (state == v1::DEVICE_STATE_ACTIVE) faulty_users_.erase(identity);
  records_[identity] = record;
  return record;
}

}  // namespace tandem
