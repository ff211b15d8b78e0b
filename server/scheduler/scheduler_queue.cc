#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "server/scheduler/scheduler.h"
#include "server/store/records.h"
#include "server/store/timestamps.h"

// The part of Scheduler that describes the queue.

namespace tandem {
namespace {

// The greatest age of an explanation without changes. Estimated starts follow the progress of other jobs.
constexpr absl::Duration kExplanationAge = absl::Seconds(1);

}  // namespace

void Scheduler::Look() {
  const absl::Duration now = clock_->Elapsed();
  if (!looked_at_changes_ && now - looked_at_ < kExplanationAge) return;
  explanations_ = policy_->Explain(TakeSnapshot());
  explained_.clear();
  for (size_t i = 0; i < explanations_.size(); ++i) {
    explained_[explanations_[i].job_id] = i;
    // The passing time alone made this start possible. Wake the policy, so that the explanation becomes true.
    wake_ = wake_ || explanations_[i].is_to_act;
  }
  looked_at_ = now;
  looked_at_changes_ = false;
}

std::optional<v1::Waiting> Scheduler::WaitingOf(const std::string& job_id, bool may_look) {
  MutexLock lock(&mutex_);
  if (const auto holder = holders_.find(job_id);
      holder != holders_.end() && holder->second.starting.has_value()) {
    v1::Waiting waiting;
    waiting.set_reason(v1::Waiting::REASON_STARTING);
    waiting.set_message("It is about to start.");
    waiting.set_position(1);
    return waiting;
  }
  if (queue_.Find(job_id) == nullptr) return options_.cluster_waiting(job_id);
  if (may_look) Look();
  const auto explained = explained_.find(job_id);
  if (explained == explained_.end()) return std::nullopt;
  return explanations_[explained->second].waiting;
}

int64_t Scheduler::queued_jobs() const {
  MutexLock lock(&mutex_);
  return static_cast<int64_t>(queue_.size());
}

v1::ListQueueResponse Scheduler::ListQueue(int64_t first, int64_t most) {
  MutexLock lock(&mutex_);
  Look();
  v1::ListQueueResponse response;
  std::map<std::string, v1::UserUsage> users;
  const absl::Time now = clock_->Now();
  for (const auto& [user, usage] : usage_.usages())
    users[user].set_device_seconds(usage_.DeviceSeconds(user, now));
  std::vector<const v1::Job*> on_cluster;
  for (const auto& [id, holder] : holders_) {
    if (holder.job.spec().has_cluster() && !holder.ending) on_cluster.push_back(&holder.job);
    v1::UserUsage& user = users[holder.job.user()];
    const int devices = static_cast<int>(holder.lease.devices.size());
    user.set_devices(user.devices() + devices);
    user.set_device_seconds(user.device_seconds() +
                            devices * holder.lease.share *
                                absl::ToDoubleSeconds(clock_->Elapsed() - holder.leased_at));
  }
  // Counts a user's next job in the queue. Returns true if the answer has the job.
  const auto count = [&](const std::string& name) {
    v1::UserUsage& user = users[name];
    user.set_queued_jobs(user.queued_jobs() + 1);
    const int position = response.total_size();
    response.set_total_size(position + 1);
    return position >= first && response.jobs_size() < most;
  };
  for (const Explanation& explanation : explanations_) {
    const WaitingJob* waiting = queue_.Find(explanation.job_id);
    if (waiting == nullptr || !count(waiting->user)) continue;
    v1::QueuedJob& job = *response.add_jobs();
    job.set_job(JobName(waiting->id));
    job.set_user(waiting->user);
    job.set_priority(waiting->priority);
    job.set_raised_by(explanation.raised_by);
    job.set_devices(waiting->gang.devices);
    if (waiting->expected_run_time != absl::InfiniteDuration()) {
      job.set_expected_seconds(absl::ToDoubleSeconds(waiting->expected_run_time));
    }
    *job.mutable_create_time() = TimestampOf(waiting->create_time);
    *job.mutable_waiting() = explanation.waiting;
  }
  // The jobs that wait for the cluster, oldest first.
  std::sort(on_cluster.begin(), on_cluster.end(), [](const v1::Job* a, const v1::Job* b) {
    return TimeOf(a->create_time()) < TimeOf(b->create_time());
  });
  for (const v1::Job* started : on_cluster) {
    const std::optional<v1::Waiting> waiting = options_.cluster_waiting(JobId(started->name()));
    if (!waiting.has_value() || !count(started->user())) continue;
    v1::QueuedJob& job = *response.add_jobs();
    job.set_job(started->name());
    job.set_user(started->user());
    job.set_priority(started->priority());
    job.set_devices(GangRequestOf(*started).replicas);
    *job.mutable_create_time() = started->create_time();
    *job.mutable_waiting() = *waiting;
  }
  for (auto& [name, user] : users) {
    user.set_user(name);
    if (options_.quota) {
      const UserQuota quota = options_.quota(name);
      user.set_max_devices(quota.max_devices);
      user.set_max_queued_jobs(quota.max_queued_jobs);
    }
    *response.add_users() = std::move(user);
  }
  return response;
}

}  // namespace tandem
