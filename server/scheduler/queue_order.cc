#include "server/scheduler/queue_order.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr absl::Duration kAssumedRunTime = absl::Hours(1);

}  // namespace

double ExpectedDeviceSeconds(int devices, double share, absl::Duration run_time) {
  if (run_time == absl::InfiniteDuration()) run_time = kAssumedRunTime;
  return devices * share * std::max(0.0, absl::ToDoubleSeconds(run_time));
}

QueueOrder::QueueOrder(const Snapshot& snapshot) {
  seconds_.reserve(snapshot.users.size() + snapshot.queue->groups().size() + snapshot.holding.size());
  for (const auto& [user, share] : snapshot.users) seconds_[user] = share.device_seconds;
  for (const HoldingJob& job : snapshot.holding) {
    if (job.ending) continue;
    seconds_[job.user] += ExpectedDeviceSeconds(static_cast<int>(job.devices.size()), job.share,
                                                job.expected_end - snapshot.now);
  }
  for (const auto& [key, group] : snapshot.queue->groups()) {
    if (!group.jobs.empty()) seconds_.try_emplace(key.first);
  }
  for (const auto& [key, group] : snapshot.queue->groups()) {
    if (group.jobs.empty()) continue;
    Head head;
    head.group = &group;
    head.job = group.jobs.begin();
    head.level = key.second + snapshot.queue->RaisedBy(group, snapshot.now);
    head.user_seconds = &seconds_.find(key.first)->second;
    head.device_seconds = *head.user_seconds;
    heads_.push_back(head);
  }
  std::make_heap(heads_.begin(), heads_.end(), &IsBehind);
}

bool QueueOrder::IsBehind(const Head& a, const Head& b) {
  if (a.level != b.level) return a.level < b.level;
  if (a.device_seconds != b.device_seconds) return a.device_seconds > b.device_seconds;
  return a.job->first > b.job->first;
}

void QueueOrder::Push(Head head) {
  heads_.push_back(head);
  std::push_heap(heads_.begin(), heads_.end(), &IsBehind);
}

const WaitingJob* QueueOrder::Next() {
  while (!heads_.empty()) {
    std::pop_heap(heads_.begin(), heads_.end(), &IsBehind);
    Head head = heads_.back();
    heads_.pop_back();
    if (head.device_seconds != *head.user_seconds) {
      // Its place is further back than it was.
      head.device_seconds = *head.user_seconds;
      Push(head);
      continue;
    }
    const WaitingJob& job = head.job->second;
    level_ = head.level;
    *head.user_seconds += ExpectedDeviceSeconds(job.gang.devices, job.share, job.run_time);
    if (++head.job != head.group->jobs.end()) {
      // Those behind the first are not raised.
      head.level = head.job->second.priority;
      head.device_seconds = *head.user_seconds;
      Push(head);
    }
    return &job;
  }
  return nullptr;
}

}  // namespace tandem
