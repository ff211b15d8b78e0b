#include "server/scheduler/inventory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tandem {

std::vector<v1::Device> Inventory::Devices() const {
  MutexLock lock(&mutex_);
  return devices_;
}

absl::Status Inventory::Acquire(const std::string& job_id, const std::vector<std::string>& devices) {
  if (devices.empty()) return absl::InvalidArgumentError("a lease needs at least one device");
  const std::string job = absl::StrCat("jobs/", job_id);
  MutexLock lock(&mutex_);
  std::vector<v1::Device*> wanted;
  for (const v1::Device& device : devices_) {
    if (device.job() == job) {
      return absl::FailedPreconditionError(absl::StrCat("\"", job, "\" already holds ", device.name()));
    }
  }
  for (const std::string& name : devices) {
    const auto found = std::find_if(devices_.begin(), devices_.end(),
                                    [&name](const v1::Device& device) { return device.name() == name; });
    if (found == devices_.end())
      return absl::NotFoundError(absl::StrCat("there is no device \"", name, "\""));
    if (!found->job().empty()) {
      return absl::FailedPreconditionError(absl::StrCat("\"", found->job(), "\" holds ", name));
    }
    if (std::find(wanted.begin(), wanted.end(), &*found) != wanted.end()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is named twice"));
    }
    wanted.push_back(&*found);
  }
  for (v1::Device* device : wanted) device->set_job(job);
  return absl::OkStatus();
}

bool Inventory::Release(const std::string& job_id) {
  const std::string job = absl::StrCat("jobs/", job_id);
  bool held = false;
  MutexLock lock(&mutex_);
  for (v1::Device& device : devices_) {
    if (device.job() != job) continue;
    device.clear_job();
    held = true;
  }
  return held;
}

}  // namespace tandem
