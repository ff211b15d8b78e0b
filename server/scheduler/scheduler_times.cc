#include <algorithm>
#include <string>

#include "absl/time/time.h"
#include "server/scheduler/scheduler.h"

// The part of Scheduler about times: time limits, ends of restart delays, and rises of waiting jobs.

namespace tandem {

void Scheduler::Dequeue(const std::string& id) {
  queue_.Remove(id);
  delayed_.erase(id);
}

absl::Duration Scheduler::NextRestart() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [id, until] : delayed_) next = std::min(next, until - clock_->Elapsed());
  return next;
}

void Scheduler::EndDelays() {
  const absl::Duration now = clock_->Elapsed();
  for (auto delayed = delayed_.begin(); delayed != delayed_.end();) {
    if (delayed->second > now) {
      ++delayed;
      continue;
    }
    if (WaitingJob* waiting = queue_.Find(delayed->first); waiting != nullptr) waiting->is_delayed = false;
    delayed = delayed_.erase(delayed);
    Changed();
  }
}

void Scheduler::NoteRaises() {
  if (next_raise_ > clock_->Elapsed()) return;
  next_raise_ = absl::InfiniteDuration();
  Changed();
}

absl::Duration Scheduler::NextTimeLimit() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [id, holder] : holders_) next = std::min(next, holder.limit_at - clock_->Elapsed());
  return next;
}

void Scheduler::CollectTimeLimits(Orders* orders) {
  const absl::Duration now = clock_->Elapsed();
  for (auto& [id, holder] : holders_) {
    if (holder.limit_at > now) continue;
    // Ask once. If the store fails, ask again after a delay.
    holder.limit_at = absl::InfiniteDuration();
    orders->time_limits.push_back(id);
  }
}

}  // namespace tandem
