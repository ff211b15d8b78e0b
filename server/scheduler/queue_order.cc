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

QueueOrder::QueueOrder(const Snapshot& snapshot, ReadinessOf readiness) : readiness_(readiness) {
  const JobQueue& queue = *snapshot.queue;
  seconds_.reserve(snapshot.users.size() + queue.groups().size() + snapshot.holding.size());
  for (const auto& [user, share] : snapshot.users) seconds_[user] = share.device_seconds;
  for (const HoldingJob& job : snapshot.holding) {
    if (job.ending) continue;
    seconds_[job.user] += ExpectedDeviceSeconds(static_cast<int>(job.devices.size()), job.share,
                                                job.expected_end - snapshot.now);
  }
  for (const auto& [key, group] : queue.groups()) seconds_.try_emplace(key.first);
  states_.reserve(queue.groups().size());
  for (const auto& [key, group] : queue.groups()) {
    GroupState& state = states_.emplace_back();
    state.key = &key;
    state.group = &group;
    state.longest = FindLongest(group);
    state.user_seconds = &seconds_.find(key.first)->second;
    Head head;
    head.state = &state;
    head.device_seconds = *state.user_seconds;
    const int raised_by = queue.RaisedBy(group, snapshot.monotonic_now);
    if (raised_by > 0 && state.longest != group.jobs.end()) {
      state.is_raised = head.is_raised = true;
      head.job = state.longest;
      head.level = key.second + raised_by;
      heads_.push_back(head);
      head.is_raised = false;
    }
    head.level = key.second;
    head.job = group.jobs.begin();
    if (SkipRaised(&head)) heads_.push_back(head);
  }
  std::make_heap(heads_.begin(), heads_.end(), &IsBehind);
}

bool QueueOrder::IsBehind(const Head& a, const Head& b) {
  if (a.level != b.level) return a.level < b.level;
  if (a.device_seconds != b.device_seconds) return a.device_seconds > b.device_seconds;
  return a.job->first > b.job->first;
}

bool QueueOrder::SkipRaised(Head* head) {
  const GroupState& state = *head->state;
  if (state.is_raised && head->job == state.longest) ++head->job;
  return head->job != state.group->jobs.end();
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
    if (head.device_seconds != *head.state->user_seconds) {
      // The user was charged since, so the job now ranks further back.
      head.device_seconds = *head.state->user_seconds;
      Push(head);
      continue;
    }
    last_ = head;
    if (!head.is_raised) {
      ++head.job;
      if (SkipRaised(&head)) Push(head);
    }
    return &last_.job->second;
  }
  return nullptr;
}

void QueueOrder::Charge() {
  const WaitingJob& job = last_.job->second;
  *last_.state->user_seconds += ExpectedDeviceSeconds(job.gang.devices, job.share, job.expected_run_time);
}

bool QueueOrder::Start() {
  Charge();
  started_.insert(&last_.job->second);
  return last_.job == last_.state->longest;
}

std::map<JobQueue::GroupKey, absl::Time> QueueOrder::Waiting() const {
  std::map<JobQueue::GroupKey, absl::Time> waiting;
  for (const GroupState& state : states_) {
    const JobIterator longest = FindLongest(*state.group);
    if (longest != state.group->jobs.end()) waiting[*state.key] = longest->second.waits_since;
  }
  return waiting;
}

QueueOrder::JobIterator QueueOrder::FindLongest(const JobQueue::Group& group) const {
  for (const auto& [since, key] : group.by_wait) {
    const JobIterator job = group.jobs.find(key);
    if (started_.contains(&job->second)) continue;
    const Readiness readiness = readiness_(job->second);
    if (readiness == Readiness::kReady) return job;
    if (readiness == Readiness::kHeldByQuota) break;
  }
  return group.jobs.end();
}

}  // namespace tandem
