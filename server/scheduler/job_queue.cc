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

bool JobQueue::Remove(const std::string& id) {
  const auto found = index_.find(id);
  if (found == index_.end()) return false;
  const Place place = found->second;
  place.group->second.jobs.erase(place.job);
  if (place.group->second.jobs.empty()) groups_.erase(place.group);
  index_.erase(found);
  return true;
}

bool JobQueue::Start(const std::string& id, bool was_first) {
  const auto place = index_.find(id);
  if (place == index_.end()) return false;
  if (was_first) place->second.group->second.waits_since = absl::InfiniteFuture();
  return Remove(id);
}

void JobQueue::NoteWaiting(const std::set<GroupKey>& waiting, absl::Time now) {
  for (auto& [key, group] : groups_) {
    if (waiting.count(key) == 0) {
      group.waits_since = absl::InfiniteFuture();
    } else if (group.waits_since == absl::InfiniteFuture()) {
      group.waits_since = now;
    }
  }
}

void JobQueue::RestoreWait(const GroupKey& group, absl::Time since) {
  if (const auto found = groups_.find(group); found != groups_.end()) found->second.waits_since = since;
}

int JobQueue::RaisedBy(const Group& group, absl::Time now) const {
  // No more than would lift the lowest priority over the highest, many times.
  constexpr double kMost = 1000;
  const absl::Duration waited = now - group.waits_since;
  if (waited < ageing_interval_) return 0;
  return static_cast<int>(std::min(kMost, std::floor(absl::FDivDuration(waited, ageing_interval_))));
}

absl::Time JobQueue::NextRaise(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [key, group] : groups_) {
    if (group.waits_since == absl::InfiniteFuture()) continue;
    // A clock that was set back makes a wait negative.
    const double levels =
        std::max(0.0, std::floor(absl::FDivDuration(now - group.waits_since, ageing_interval_)));
    next = std::min(next, group.waits_since + ageing_interval_ * (levels + 1));
  }
  return next;
}

}  // namespace tandem
