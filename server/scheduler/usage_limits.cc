#include "server/scheduler/usage_limits.h"

namespace tandem {
namespace {

int ValueOf(const absl::flat_hash_map<std::string, int>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? 0 : found->second;
}

}  // namespace

UsageLimits::UsageLimits(const Snapshot& snapshot) : snapshot_(snapshot) {
  for (const HoldingJob& job : snapshot.holding) {
    held_[job.user] += static_cast<int>(job.devices.size());
    if (!job.sweep.empty()) ++running_[job.sweep];
  }
}

int UsageLimits::MaxDevices(const std::string& user) const {
  const auto share = snapshot_.users.find(user);
  return share == snapshot_.users.end() ? 0 : share->second.max_devices;
}

int UsageLimits::Held(const std::string& user) const { return ValueOf(held_, user); }

int UsageLimits::Running(const std::string& sweep) const { return ValueOf(running_, sweep); }

bool UsageLimits::QuotaAllows(const WaitingJob& job) const {
  const int most = MaxDevices(job.user);
  if (most == 0) return true;
  return !kept_.contains(job.user) && Held(job.user) + job.gang.devices <= most;
}

bool UsageLimits::QuotaCouldAllow(const WaitingJob& job) const {
  const int most = MaxDevices(job.user);
  return most == 0 || job.gang.devices <= most;
}

std::string UsageLimits::QuotaKeptFor(const std::string& user) const {
  const auto kept = kept_.find(user);
  return kept == kept_.end() ? "" : kept->second;
}

bool UsageLimits::SweepAllows(const WaitingJob& job) const {
  return job.sweep_max_running <= 0 || Running(job.sweep) < job.sweep_max_running;
}

void UsageLimits::Add(const WaitingJob& job) {
  held_[job.user] += job.gang.devices;
  if (!job.sweep.empty()) ++running_[job.sweep];
}

}  // namespace tandem
