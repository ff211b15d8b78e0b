#include "server/scheduler/job_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {

bool JobQueue::Add(WaitingJob job) {
  if (index_.contains(job.id)) return false;
  const auto group = groups_.try_emplace({job.user, job.priority}).first;
  const std::string id = job.id;
  const auto place = group->second.jobs.try_emplace({job.create_time, added_++}, std::move(job)).first;
  index_[id] = {group, place};
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
  const auto place = index_.find(id);
  if (place == index_.end()) return false;
  place->second.group->second.jobs.erase(place->second.job);
  index_.erase(place);
  return true;
}

bool JobQueue::Start(const std::string& id, absl::Time now) {
  const auto place = index_.find(id);
  if (place == index_.end()) return false;
  Group& group = place->second.group->second;
  if (place->second.job == group.jobs.begin()) {
    const absl::Time since = std::max(group.waits_since, place->second.job->second.create_time);
    group.waits_since = std::min(now, since + ageing_interval_);
  }
  return Remove(id);
}

int JobQueue::RaisedBy(const Group& group, absl::Time now) const {
  // No more than would lift the lowest priority over the highest, many times.
  constexpr double kMost = 1000;
  const absl::Duration waited = now - std::max(group.waits_since, group.jobs.begin()->second.create_time);
  if (waited < ageing_interval_) return 0;
  return static_cast<int>(std::min(kMost, std::floor(absl::FDivDuration(waited, ageing_interval_))));
}

}  // namespace tandem
