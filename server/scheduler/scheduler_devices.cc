#include <utility>

#include "absl/strings/str_cat.h"
#include "server/scheduler/scheduler.h"
#include "third_party/spdlog/log.h"

// The part of Scheduler about devices' states.

namespace tandem {
namespace {

// The number of jobs whose workers crash on a device, without a success in between, before the device is
// excluded.
constexpr int kMaxFaults = 2;
// The same if all crashes are one user's and other users have also used devices. A worker can crash on
// purpose, and one user's jobs must not quickly take a device from everybody.
constexpr int kMaxFaultsOfOneUser = 4;

}  // namespace

void Scheduler::RestoreDevices(const std::vector<StoredDevice>& records) {
  for (const StoredDevice& record : records) device_records_[record.name] = record;
  // Some devices may be missing in this daemon.
  for (const v1::Device& device : inventory_->Devices()) {
    const auto found = device_records_.find(inventory_->IdentityOf(device.name()));
    if (found == device_records_.end()) continue;
    const StoredDevice& record = found->second;
    inventory_->SetState(device.name(), record.state, record.message, record.faults).status().IgnoreError();
  }
}

void Scheduler::CountFault(const std::string& device, const v1::Job& faulty) {
  const std::string& job = faulty.name();
  const std::string identity = inventory_->IdentityOf(device);
  StoredDevice& record = device_records_[identity];
  record.name = identity;
  // Repeated crashes of one job probably are the job's fault.
  if (record.last_faulty_job == job) return;
  record.last_faulty_job = job;
  std::set<std::string>& users = faulty_users_[identity];
  // The users of crashes before the daemon's start are unknown.
  if (record.faults > 0 && users.empty()) users.insert("");
  users.insert(faulty.user());
  ++record.faults;
  const bool is_one_of_several = users.size() == 1 && usage_.usages().size() > 1;
  if (record.faults >= (is_one_of_several ? kMaxFaultsOfOneUser : kMaxFaults) &&
      record.state != v1::DEVICE_STATE_EXCLUDED) {
    record.state = v1::DEVICE_STATE_EXCLUDED;
    record.message = absl::StrCat(
        "The workers of ", record.faults, " jobs crashed on it, the last that of \"", job,
        "\". Look at the machine, then: tandem devices resume ", device.substr(device.find('/') + 1));
    spdlog::error("device excluded device={}: {}", device, record.message);
  }
  PutDevice(device, record);
}

void Scheduler::ForgetFaults(const std::string& device) {
  const auto found = device_records_.find(inventory_->IdentityOf(device));
  if (found == device_records_.end()) return;
  StoredDevice& record = found->second;
  // An excluded device stays excluded until somebody has examined it.
  if (record.faults == 0 || record.state == v1::DEVICE_STATE_EXCLUDED) return;
  record.faults = 0;
  record.last_faulty_job.clear();
  faulty_users_.erase(record.name);
  PutDevice(device, record);
}

void Scheduler::PutDevice(const std::string& device, const StoredDevice& record) {
  inventory_->SetState(device, record.state, record.message, record.faults).status().IgnoreError();
  store_->Write([record](Transaction& transaction) { return transaction.PutDevice(record); },
                [device](const absl::Status& status) {
                  if (!status.ok()) {
                    spdlog::warn("cannot record the faults of {}: {}", device, status.ToString());
                  }
                });
}

void Scheduler::SetDeviceState(const std::string& device, v1::DeviceState state, const std::string& reason,
                               JobMachine::Done<v1::Device> done) {
  absl::Status problem;
  StoredDevice record;
  {
    MutexLock lock(&mutex_);
    const std::string identity = inventory_->IdentityOf(device);
    const auto known = device_records_.find(identity);
    if (known != device_records_.end()) record = known->second;
    record.name = identity;
    if (state == v1::DEVICE_STATE_DRAINED && record.state == v1::DEVICE_STATE_EXCLUDED) {
      problem = absl::FailedPreconditionError(
          absl::StrCat("cannot drain \"", device, "\": it is excluded; resume it first"));
    } else {
      record.state = state;
      record.message = reason;
      if (state == v1::DEVICE_STATE_ACTIVE) {
        record.faults = 0;
        record.last_faulty_job.clear();
        faulty_users_.erase(identity);
      }
      problem = inventory_->SetState(device, record.state, record.message, record.faults).status();
    }
    if (problem.ok()) {
      device_records_[identity] = record;
      Changed();
    }
  }
  if (!problem.ok()) {
    done(std::move(problem));
    return;
  }
  store_->Write([record](Transaction& transaction) { return transaction.PutDevice(record); },
                [this, device, done = std::move(done)](absl::Status status) mutable {
                  if (!status.ok()) return done(std::move(status));
                  for (v1::Device& now : inventory_->Devices()) {
                    if (now.name() == device) return done(std::move(now));
                  }
                  done(absl::NotFoundError(absl::StrCat("there is no device \"", device, "\"")));
                });
}

}  // namespace tandem
