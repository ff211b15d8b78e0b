#include "server/scheduler/device_plan.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <tuple>
#include <utility>

namespace tandem {
namespace {

// Shares of a device are sums of decimal fractions.
constexpr double kShareTolerance = 1e-9;

}  // namespace

DevicePlan::DevicePlan(const Snapshot& snapshot, Times times)
    : snapshot_(snapshot), times_(times), devices_(snapshot.devices.size()), lowest_preemptible_(INT_MAX) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    devices_[i].slot = &snapshot.devices[i];
    devices_[i].free_memory_bytes = snapshot.devices[i].memory_bytes;
  }
  ending_.resize(snapshot.holding.size());
  for (size_t i = 0; i < snapshot.holding.size(); ++i) {
    const HoldingJob& job = snapshot.holding[i];
    ending_[i] = job.ending;
    if (job.preemptible && !job.ending) lowest_preemptible_ = std::min(lowest_preemptible_, job.priority);
    const absl::Time end = EndOf(job);
    for (const int position : job.devices) {
      Device& device = devices_[position];
      device.holders.push_back(static_cast<int>(i));
      device.free_share -= job.share;
      device.free_memory_bytes -= job.memory_bytes;
      device.is_shareable = device.is_shareable && job.share < 1;
      device.available_at = std::max(device.available_at, end);
    }
  }
  UpdateRoomy();
}

absl::Time DevicePlan::EndOf(const HoldingJob& job) const {
  // The job may end at any moment. Its devices rank behind free devices.
  if (job.ending) return job.lease_time;
  if (times_ == Times::kLatest) return job.latest_end;
  // An estimate in the past says nothing.
  return job.expected_end > snapshot_.now ? job.expected_end : absl::InfiniteFuture();
}

absl::Duration DevicePlan::RunTimeOf(const WaitingJob& job) const {
  return times_ == Times::kLatest ? job.longest_run_time : job.expected_run_time;
}

void DevicePlan::UpdateRoomy() {
  roomy_.clear();
  for (size_t i = 0; i < devices_.size(); ++i) {
    const Device& device = devices_[i];
    if (InService(device) && device.is_shareable && device.free_share > kShareTolerance &&
        device.reserved_at > snapshot_.now) {
      roomy_.push_back(static_cast<int>(i));
    }
  }
}

bool DevicePlan::Suits(const Device& device, const WaitingJob& job, v1::DeviceKind kind) const {
  const std::vector<std::string>& names = job.gang.names;
  const bool is_wanted = names.empty()
                             ? device.slot->kind == kind
                             : std::find(names.begin(), names.end(), device.slot->name) != names.end();
  return is_wanted && device.slot->memory_bytes >= job.gang.memory_bytes();
}

int DevicePlan::CountOfKind(const WaitingJob& job, v1::DeviceKind kind) const {
  return static_cast<int>(std::count_if(devices_.begin(), devices_.end(),
                                        [&](const Device& device) { return Suits(device, job, kind); }));
}

v1::DeviceKind DevicePlan::KindFor(const WaitingJob& job) const {
  if (job.gang.device_kind != v1::DEVICE_KIND_UNSPECIFIED) return job.gang.device_kind;
  return CountOfKind(job, v1::DEVICE_KIND_GPU) >= job.gang.devices ? v1::DEVICE_KIND_GPU
                                                                   : v1::DEVICE_KIND_CPU;
}

DevicePlan::Fit DevicePlan::FitOf(const WaitingJob& job) {
  const v1::DeviceKind kind = KindFor(job);
  int in_service = 0;
  int out_of_service = 0;
  for (const Device& device : devices_) {
    if (!Suits(device, job, kind)) continue;
    ++(InService(device) ? in_service : out_of_service);
    if (in_service >= job.gang.devices) return Fit::kFits;
  }
  return in_service + out_of_service >= job.gang.devices ? Fit::kOutOfService : Fit::kMissing;
}

bool DevicePlan::HasRoomFor(const Device& device, const WaitingJob& job) const {
  if (job.share >= 1) return device.holders.empty() && device.free_share >= 1 - kShareTolerance;
  return device.is_shareable && device.free_share >= job.share - kShareTolerance &&
         device.free_memory_bytes >= job.gang.memory_bytes();
}

void DevicePlan::FindCandidates(const WaitingJob& job) {
  candidates_.clear();
  if (!job.gang.names.empty()) {
    // In the order of ranks.
    for (const std::string& name : job.gang.names) {
      for (size_t i = 0; i < devices_.size(); ++i) {
        if (devices_[i].slot->name == name && InService(devices_[i]))
          candidates_.push_back(static_cast<int>(i));
      }
    }
    return;
  }
  const v1::DeviceKind kind = KindFor(job);
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (InService(devices_[i]) && Suits(devices_[i], job, kind)) candidates_.push_back(static_cast<int>(i));
  }
}

void DevicePlan::Take(const std::vector<int>& devices, const WaitingJob& job) {
  for (const int position : devices) {
    Device& device = devices_[position];
    device.is_taken = true;
    device.free_share -= job.share;
    device.free_memory_bytes -= job.gang.memory_bytes();
    device.is_shareable = device.is_shareable && job.share < 1;
    // Reservations do not move, because the job ends before them.
    device.available_at = std::max(device.available_at, snapshot_.now + RunTimeOf(job));
  }
  UpdateRoomy();
}

std::vector<int> DevicePlan::Start(const WaitingJob& job) {
  if (static_cast<int>(roomy_.size()) < job.gang.devices) return {};
  const absl::Time end = snapshot_.now + RunTimeOf(job);
  const auto can_take = [&](const Device& device) {
    // A job without a time limit could delay any reservation.
    return HasRoomFor(device, job) &&
           (device.reserved_at == absl::InfiniteFuture() || end <= device.reserved_at);
  };
  std::vector<int> chosen;
  if (!job.gang.names.empty()) {
    FindCandidates(job);
    for (const int i : candidates_) {
      if (can_take(devices_[i])) chosen.push_back(i);
    }
  } else {
    const v1::DeviceKind kind = KindFor(job);
    for (const int i : roomy_) {
      if (Suits(devices_[i], job, kind) && can_take(devices_[i])) chosen.push_back(i);
      if (job.share >= 1 && static_cast<int>(chosen.size()) == job.gang.devices) break;
    }
    if (job.share < 1) {
      // Prefer shared devices, the fullest first, so that whole devices stay free.
      std::stable_sort(chosen.begin(), chosen.end(),
                       [&](int a, int b) { return devices_[a].free_share < devices_[b].free_share; });
    }
  }
  if (static_cast<int>(chosen.size()) < job.gang.devices) return {};
  chosen.resize(job.gang.devices);
  Take(chosen, job);
  return chosen;
}

absl::Time DevicePlan::Reserve(const WaitingJob& job) {
  FindCandidates(job);
  const auto sooner = [&](int a, int b) {
    return std::tie(devices_[a].available_at, a) < std::tie(devices_[b].available_at, b);
  };
  if (static_cast<int>(candidates_.size()) > job.gang.devices) {
    std::nth_element(candidates_.begin(), candidates_.begin() + (job.gang.devices - 1), candidates_.end(),
                     sooner);
    candidates_.resize(job.gang.devices);
  }
  absl::Time start = snapshot_.now;
  for (const int i : candidates_) start = std::max(start, devices_[i].available_at);
  for (const int i : candidates_) {
    Device& device = devices_[i];
    // If the start is unknown, keep the free devices anyway: otherwise the job might wait for ever.
    device.reserved_at =
        std::min(device.reserved_at, start == absl::InfiniteFuture() ? snapshot_.now : start);
    device.available_at = start + RunTimeOf(job);
  }
  UpdateRoomy();
  return start;
}

bool DevicePlan::FindVictims(const WaitingJob& job, Option* option) const {
  const Device& device = devices_[option->position];
  // The jobs that stay.
  double held_share = 0;
  int64_t held_memory_bytes = 0;
  int all = 0;
  int alone = 0;
  const auto count = [&](const HoldingJob& held, int sign) {
    held_share += sign * held.share;
    held_memory_bytes += sign * held.memory_bytes;
    all += sign;
    alone += held.share < 1 ? 0 : sign;
  };
  const auto has_room = [&] {
    if (job.share >= 1) return all == 0;
    return alone == 0 && 1 - held_share >= job.share - kShareTolerance &&
           device.slot->memory_bytes - held_memory_bytes >= job.gang.memory_bytes();
  };
  std::vector<int> may_end;
  for (const int holder : device.holders) {
    if (ending_[holder]) continue;
    const HoldingJob& held = snapshot_.holding[holder];
    count(held, 1);
    if (held.preemptible && held.priority < job.priority) may_end.push_back(holder);
  }
  // End the jobs of the lowest priority first, the newest among them first, and no more than necessary.
  std::sort(may_end.begin(), may_end.end(), [this](int a, int b) {
    const HoldingJob& first = snapshot_.holding[a];
    const HoldingJob& second = snapshot_.holding[b];
    return std::tuple(first.priority, second.lease_time, a) <
           std::tuple(second.priority, first.lease_time, b);
  });
  for (const int holder : may_end) {
    if (has_room()) break;
    count(snapshot_.holding[holder], -1);
    option->victims.push_back(holder);
  }
  if (!has_room()) return false;
  for (size_t i = option->victims.size(); i-- > 0;) {
    const HoldingJob& held = snapshot_.holding[option->victims[i]];
    count(held, 1);
    if (has_room()) {
      option->victims.erase(option->victims.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      count(held, -1);
    }
  }
  for (const int holder : option->victims) {
    option->priority = std::max(option->priority, snapshot_.holding[holder].priority);
    option->lease_time = std::min(option->lease_time, snapshot_.holding[holder].lease_time);
  }
  return true;
}

bool DevicePlan::Preempt(const WaitingJob& job, std::vector<std::string>* preemptions) {
  FindCandidates(job);
  std::vector<Option> options;
  for (const int i : candidates_) {
    if (devices_[i].is_taken || devices_[i].reserved_at != absl::InfiniteFuture()) continue;
    Option option;
    option.position = i;
    if (FindVictims(job, &option)) options.push_back(std::move(option));
  }
  if (static_cast<int>(options.size()) < job.gang.devices) return false;
  // Prefer free devices, then victims of the lowest priority, then the newest victims.
  std::stable_sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return std::tuple(a.victims.size(), a.priority, b.lease_time) <
           std::tuple(b.victims.size(), b.priority, a.lease_time);
  });
  options.resize(job.gang.devices);
  for (const Option& option : options) {
    Device& device = devices_[option.position];
    for (const int holder : option.victims) {
      // The job may also hold another of the devices.
      if (ending_[holder]) continue;
      ending_[holder] = true;
      preemptions->push_back(snapshot_.holding[holder].id);
    }
    device.reserved_at = snapshot_.now;
    device.available_at = snapshot_.now + RunTimeOf(job);
  }
  UpdateRoomy();
  return true;
}

int DevicePlan::CountRoom(const WaitingJob& job) {
  FindCandidates(job);
  return static_cast<int>(std::count_if(candidates_.begin(), candidates_.end(),
                                        [&](int i) { return HasRoomFor(devices_[i], job); }));
}

int DevicePlan::CountSuitable(const WaitingJob& job) {
  FindCandidates(job);
  return static_cast<int>(candidates_.size());
}

}  // namespace tandem
