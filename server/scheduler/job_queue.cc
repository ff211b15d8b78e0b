#include "server/scheduler/job_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {
namespace {

absl::Duration HeldBack(const JobQueue::Line& line, absl::Time now) {
  // Where it is not held back, or the clock was set back, that was in the future.
  return line.held_back + std::max(absl::ZeroDuration(), now - line.held_back_since);
}

}  // namespace

bool JobQueue::Add(WaitingJob job) {
  if (index_.contains(job.id)) return false;
  job.waits_since = std::max(job.waits_since, job.create_time);
  const auto group = groups_.try_emplace({job.user, job.priority}).first;
  const auto line = group->second.lines.try_emplace({job.gang.devices, job.sweep}).first;
  job.held_back_before = HeldBack(line->second, job.waits_since);
  const std::string id = job.id;
  const Key key = {job.create_time, added_++};
  line->second.by_wait.insert({job.waits_since, key});
  index_[id] = {group, line, group->second.jobs.try_emplace(key, std::move(job)).first};
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
  const Place& place = found->second;
  Group& group = place.group->second;
  place.line->second.by_wait.erase({place.job->second.waits_since, place.job->first});
  if (place.line->second.by_wait.empty()) group.lines.erase(place.line);
  group.jobs.erase(place.job);
  index_.erase(found);
  return true;
}

bool JobQueue::Start(const std::string& id, absl::Time now, bool was_longest) {
  const auto place = index_.find(id);
  if (place == index_.end()) return false;
  if (was_longest) {
    Group& group = place->second.group->second;
    const absl::Time since = WaitsSince(group, place->second.line->second, place->second.job->second, now);
    group.waits_since = std::min(now, since + ageing_interval_);
  }
  return Remove(id);
}

void JobQueue::NoteStart(const std::string& user, int priority, absl::Time time) {
  Group& group = groups_[{user, priority}];
  group.waits_since = std::max(group.waits_since, time);
}

void JobQueue::NoteLimits(absl::FunctionRef<bool(const WaitingJob&)> allow, absl::Time now) {
  for (auto& [key, group] : groups_) {
    for (auto& [kind, line] : group.lines) {
      const bool was_held_back = line.held_back_since != absl::InfiniteFuture();
      const bool is_held_back = !allow(group.jobs.find(line.by_wait.begin()->second)->second);
      if (is_held_back == was_held_back) continue;
      if (was_held_back) line.held_back = HeldBack(line, now);
      line.held_back_since = is_held_back ? now : absl::InfiniteFuture();
    }
  }
}

JobQueue::Jobs::const_iterator JobQueue::LongestWaiting(const Group& group,
                                                        absl::FunctionRef<bool(const WaitingJob&)> can_run,
                                                        absl::Time now) const {
  Jobs::const_iterator longest = group.jobs.end();
  absl::Time longest_since = absl::InfiniteFuture();
  for (const auto& [kind, line] : group.lines) {
    if (line.held_back_since != absl::InfiniteFuture()) continue;
    for (const auto& [since, key] : line.by_wait) {
      const auto job = group.jobs.find(key);
      if (!can_run(job->second)) continue;
      const absl::Time waits_since = WaitsSince(group, line, job->second, now);
      if (longest == group.jobs.end() ||
          std::pair(waits_since, job->first) < std::pair(longest_since, longest->first)) {
        longest = job;
        longest_since = waits_since;
      }
      break;
    }
  }
  return longest;
}

absl::Time JobQueue::WaitsSince(const Group& group, const Line& line, const WaitingJob& job,
                                absl::Time now) const {
  const absl::Duration held_back = std::max(absl::ZeroDuration(), HeldBack(line, now) - job.held_back_before);
  return std::max(group.waits_since, job.waits_since + held_back);
}

int JobQueue::RaisedBy(const Group& group, const WaitingJob& job, absl::Time now) const {
  // No more than would lift the lowest priority over the highest, many times.
  constexpr double kMost = 1000;
  const auto line = group.lines.find({job.gang.devices, job.sweep});
  const absl::Duration waited = now - WaitsSince(group, line->second, job, now);
  if (waited < ageing_interval_) return 0;
  return static_cast<int>(std::min(kMost, std::floor(absl::FDivDuration(waited, ageing_interval_))));
}

absl::Time JobQueue::NextRaise(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [key, group] : groups_) {
    for (const auto& [kind, line] : group.lines) {
      if (line.held_back_since != absl::InfiniteFuture()) continue;
      const WaitingJob& job = group.jobs.find(line.by_wait.begin()->second)->second;
      const absl::Time since = WaitsSince(group, line, job, now);
      const double levels = std::max(0.0, std::floor(absl::FDivDuration(now - since, ageing_interval_)));
      next = std::min(next, since + ageing_interval_ * (levels + 1));
    }
  }
  return next;
}

}  // namespace tandem
