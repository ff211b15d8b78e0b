#include "server/scheduler/job_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {

bool JobQueue::Add(WaitingJob job) {
  if (index_.contains(job.id)) return false;
  const auto group = groups_.try_emplace({job.user, job.priority}).first;
  const std::string id = job.id;
  const Key key = {job.create_time, added_++};
  group->second.by_wait.insert({job.waits_since, key});
  index_[id] = {group, group->second.jobs.try_emplace(key, std::move(job)).first};
  return true;
}

WaitingJob* JobQueue::Find(const std::string& id) {
  const auto place = index_.find(id);
  return place == index_.end() ? nullptr : &place->second.job->second;
}

const WaitingJob* JobQueue::Find(const std::string& id) const {
  const auto place = index_.find(id);
  return place == index_.end() ? nullptr : &place->second.job->second;
}

std::optional<JobQueue::Key> JobQueue::KeyOf(const std::string& id) const {
  const auto place = index_.find(id);
  if (place == index_.end()) return std::nullopt;
  return place->second.job->first;
}

bool JobQueue::Remove(const std::string& id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return false;
  const Place place = found->second;
  Group& group = place.group->second;
  group.by_wait.erase({place.job->second.waits_since, place.job->first});
  group.jobs.erase(place.job);
  if (group.jobs.empty()) groups_.erase(place.group);
  index_.erase(found);
  return true;
}

bool JobQueue::Start(const std::string& id, absl::Time now, bool was_longest) {
  const auto place = index_.find(id);
  if (place == index_.end()) return false;
  absl::Time& waits_since = place->second.group->second.waits_since;
  if (was_longest) waits_since = std::min(now, waits_since + ageing_interval_);
  return Remove(id);
}

void JobQueue::NoteWaiting(const std::map<GroupKey, absl::Time>& waiting, absl::Time now) {
  for (auto& [key, group] : groups_) {
    if (const auto longest = waiting.find(key); longest == waiting.end()) {
      group.waits_since = absl::InfiniteFuture();
    } else if (group.waits_since == absl::InfiniteFuture()) {
      group.waits_since = now;
    } else {
      group.waits_since = std::max(group.waits_since, longest->second);
    }
  }
}

void JobQueue::RestoreWait(const GroupKey& group, absl::Time since) {
  if (const auto found = groups_.find(group); found != groups_.end()) found->second.waits_since = since;
}

int JobQueue::RaisedBy(const Group& group, absl::Time now) const {
  // A bound far above the range of priorities.
  constexpr double kMost = 1000;
  const absl::Duration waited = now - group.waits_since;
  if (waited < ageing_interval_) return 0;
  return static_cast<int>(std::min(kMost, std::floor(absl::FDivDuration(waited, ageing_interval_))));
}

absl::Time JobQueue::NextRaise(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [key, group] : groups_) {
    if (group.waits_since == absl::InfiniteFuture()) continue;
    // A wait may begin after `now`.
    const double levels =
        std::max(0.0, std::floor(absl::FDivDuration(now - group.waits_since, ageing_interval_)));
    next = std::min(next, group.waits_since + ageing_interval_ * (levels + 1));
  }
  return next;
}

}  // namespace tandem
