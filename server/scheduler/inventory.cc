#include "server/scheduler/inventory.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/store/records.h"

namespace tandem {
namespace {

// Shares are sums of decimal fractions.
constexpr double kShareTolerance = 1e-9;

}  // namespace

Inventory::Inventory(std::vector<v1::Device> devices) {
  for (v1::Device& device : devices) {
    if (device.state() == v1::DEVICE_STATE_UNSPECIFIED) device.set_state(v1::DEVICE_STATE_ACTIVE);
    devices_.push_back({std::move(device), {}});
  }
}

std::vector<v1::Device> Inventory::Devices() const {
  MutexLock lock(&mutex_);
  std::vector<v1::Device> devices;
  for (const Held& held : devices_) devices.push_back(held.device);
  return devices;
}

std::string Inventory::IdentityOf(const std::string& name) const {
  MutexLock lock(&mutex_);
  for (const Held& held : devices_) {
    if (held.device.name() == name && !held.device.gpu().uuid().empty()) return held.device.gpu().uuid();
  }
  return name;
}

Inventory::Held* Inventory::Find(const std::string& name) {
  const auto found = std::find_if(devices_.begin(), devices_.end(),
                                  [&name](const Held& held) { return held.device.name() == name; });
  return found == devices_.end() ? nullptr : &*found;
}

// Updates the fields about leases in a device's message.
void Inventory::Describe(Held* held) {
  v1::Device& device = held->device;
  device.set_job(device.jobs().empty() ? "" : device.jobs(0));
  double share = 0;
  int64_t memory = 0;
  for (const Lease& lease : held->leases) {
    share += lease.share;
    memory += lease.memory_bytes;
  }
  device.set_leased_share(std::min(1.0, share));
  device.set_leased_memory_bytes(memory);
}

absl::Status Inventory::Acquire(const std::string& job_id, const Lease& lease) {
  if (lease.devices.empty()) return absl::InvalidArgumentError("cannot lease: no device is named");
  if (!(lease.share > 0) || lease.share > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot lease a share of ", lease.share, ": it must be above 0 and at most 1"));
  }
  const std::string job = JobName(job_id);
  MutexLock lock(&mutex_);
  std::vector<Held*> wanted;
  for (const Held& held : devices_) {
    if (std::find(held.device.jobs().begin(), held.device.jobs().end(), job) != held.device.jobs().end()) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot lease to \"", job, "\": it already holds ", held.device.name()));
    }
  }
  for (const std::string& name : lease.devices) {
    Held* held = Find(name);
    if (held == nullptr) return absl::NotFoundError(absl::StrCat("there is no device \"", name, "\""));
    const v1::Device& device = held->device;
    if (!held->leases.empty()) {
      const bool fits = device.leased_share() + lease.share <= 1 + kShareTolerance &&
                        device.leased_memory_bytes() + lease.memory_bytes <= device.memory_bytes();
      if (!fits) {
        return absl::FailedPreconditionError(absl::StrCat("\"", absl::StrJoin(device.jobs(), "\", \""), "\" ",
                                                          device.jobs_size() == 1 ? "holds " : "hold ",
                                                          name));
      }
    }
    if (std::find(wanted.begin(), wanted.end(), held) != wanted.end()) {
      return absl::InvalidArgumentError(absl::StrCat("cannot lease ", name, ": it is named twice"));
    }
    wanted.push_back(held);
  }
  for (Held* held : wanted) {
    held->device.add_jobs(job);
    held->leases.push_back(lease);
    Describe(held);
  }
  return absl::OkStatus();
}

std::vector<std::string> Inventory::Release(const std::string& job_id) {
  const std::string job = JobName(job_id);
  std::vector<std::string> released;
  MutexLock lock(&mutex_);
  for (Held& held : devices_) {
    const auto& jobs = held.device.jobs();
    const auto found = std::find(jobs.begin(), jobs.end(), job);
    if (found == jobs.end()) continue;
    released.push_back(held.device.name());
    held.leases.erase(held.leases.begin() + (found - jobs.begin()));
    held.device.mutable_jobs()->erase(found);
    Describe(&held);
  }
  return released;
}

absl::StatusOr<v1::Device> Inventory::SetState(const std::string& device, v1::DeviceState state,
                                               const std::string& message, int faults) {
  MutexLock lock(&mutex_);
  Held* held = Find(device);
  if (held == nullptr) {
    std::vector<std::string> names;
    for (const Held& known : devices_) names.push_back(known.device.name());
    return absl::NotFoundError(absl::StrCat("there is no device \"", device, "\"; this daemon has ",
                                            names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  held->device.set_state(state);
  held->device.set_state_message(message);
  held->device.set_faults(faults);
  return held->device;
}

}  // namespace tandem
