#include "server/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "server/scheduler/device_plan.h"
#include "server/store/records.h"
#include "server/store/timestamps.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// The delay after a failure of the store to start a job.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

double ShareOf(const v1::Job& job) { return job.spec().has_device_share() ? job.spec().device_share() : 1.0; }

WaitingJob WaitingJobOf(const v1::Job& job) {
  WaitingJob waiting;
  waiting.id = JobId(job.name());
  waiting.user = job.user();
  waiting.priority = job.priority();
  waiting.create_time = TimeOf(job.create_time());
  waiting.gang = GangRequestOf(job);
  waiting.share = ShareOf(job);
  waiting.longest_run_time = LongestRemaining(job, absl::ZeroDuration());
  waiting.sweep = job.sweep();
  waiting.sweep_max_running = job.sweep_max_running();
  waiting.is_on_cluster = job.spec().has_cluster();
  return waiting;
}

// Returns each name once, in the order of first occurrence.
std::vector<std::string> Distinct(const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::vector<std::string> distinct;
  for (const std::string& name : names) {
    if (std::find(distinct.begin(), distinct.end(), name) == distinct.end()) distinct.push_back(name);
  }
  return distinct;
}

}  // namespace

Scheduler::Scheduler(JobMachine* jobs, Store* store, Inventory* inventory, const PlacementPolicy* policy,
                     WorkerStarter* starter, const Clock* clock, Options options)
    : jobs_(jobs),
      store_(store),
      inventory_(inventory),
      policy_(policy),
      starter_(starter),
      clock_(clock),
      options_(std::move(options)),
      queue_(options_.ageing_interval),
      usage_(options_.fair_share_half_life),
      device_records_(inventory_, store_) {}

Scheduler::~Scheduler() { Stop(); }

v1::Job Scheduler::Trimmed(v1::Job job) {
  v1::JobSpec& spec = *job.mutable_spec();
  spec.clear_dataset();
  spec.clear_model();
  spec.clear_training();
  spec.clear_initial_weights();
  // Clear would keep the strings' memory.
  google::protobuf::RepeatedPtrField<std::string>().Swap(spec.mutable_frozen_layers());
  return job;
}

absl::Status Scheduler::RestoreRecords() {
  TANDEM_ASSIGN_OR_RETURN(const std::vector<StoredUsage> usages, store_->Usages());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<StoredDevice> devices, store_->Devices());
  MutexLock lock(&mutex_);
  for (const StoredUsage& usage : usages) {
    usage_.Restore(usage.user, {usage.device_us * 1e-6, absl::FromUnixMicros(usage.as_of_us)});
  }
  device_records_.Restore(devices);
  return absl::OkStatus();
}

absl::Status Scheduler::Restore(const std::vector<v1::Job>& jobs) {
  std::vector<std::string> problems;
  absl::StatusCode code = absl::StatusCode::kOk;
  for (const v1::Job& job : jobs) {
    if (job.state() == v1::JOB_STATE_QUEUED) {
      MutexLock lock(&mutex_);
      Enqueue(job, MonotonicOf(std::max(TimeOf(job.create_time()), TimeOf(job.lease_time()))));
      continue;
    }
    if (const absl::Status status = RestoreLease(job); !status.ok()) {
      code = status.code();
      problems.emplace_back(status.message());
    }
  }
  RestoreWaits(jobs);
  return absl::Status(code, absl::StrJoin(problems, "; "));
}

void Scheduler::RestoreWaits(const std::vector<v1::Job>& jobs) {
  MutexLock lock(&mutex_);
  std::map<JobQueue::GroupKey, absl::Time> waits;
  for (const v1::Job& job : jobs) {
    if (job.state() != v1::JOB_STATE_QUEUED) continue;
    const auto wait = waits.try_emplace({job.user(), job.priority()}, clock_->Now()).first;
    wait->second = std::min(wait->second, TimeOf(job.create_time()));
  }
  for (const v1::Job& job : jobs) {
    if (const auto wait = waits.find({job.user(), job.priority()}); wait != waits.end()) {
      wait->second = std::max(wait->second, std::min(TimeOf(job.lease_time()), clock_->Now()));
    }
  }
  for (const auto& [group, since] : waits) queue_.RestoreWait(group, MonotonicOf(since));
}

absl::Status Scheduler::RestoreLease(const v1::Job& job) {
  const std::string id = JobId(job.name());
  const std::vector<v1::Device> devices = inventory_->Devices();
  Holder holder;
  std::vector<std::string> missing;
  for (const std::string& name : Distinct(job.devices())) {
    const bool found = std::any_of(devices.begin(), devices.end(),
                                   [&name](const v1::Device& device) { return device.name() == name; });
    (found ? holder.lease.devices : missing).push_back(name);
  }
  holder.lease.share = ShareOf(job);
  holder.lease.memory_bytes = GangRequestOf(job).memory_bytes();
  if (!holder.lease.devices.empty()) {
    if (const absl::Status acquired = inventory_->Acquire(id, holder.lease); !acquired.ok()) {
      return absl::Status(acquired.code(), absl::StrCat("cannot restore the lease of \"", job.name(),
                                                        "\": ", acquired.message()));
    }
  }
  holder.job = Trimmed(job);
  holder.lease_time = job.has_lease_time() ? TimeOf(job.lease_time()) : clock_->Now();
  // Trust the wall clock: its jumps while no daemon ran are unknown.
  holder.leased_at = clock_->Elapsed() - std::max(absl::ZeroDuration(), clock_->Now() - holder.lease_time);
  // If the job has left its lease, run_seconds has the lease's time. The time in a cluster's queue does not
  // count.
  if (IsHolding(job.state()) && (!job.spec().has_cluster() || job.state() == v1::JOB_STATE_RUNNING)) {
    holder.limit_at = holder.leased_at + LongestRemaining(job, absl::ZeroDuration());
  }
  holder.ending = job.state() != v1::JOB_STATE_STARTING && job.state() != v1::JOB_STATE_RUNNING;
  {
    MutexLock lock(&mutex_);
    holders_[id] = std::move(holder);
    if (WaitingJob* waiting = queue_.Find(id); waiting != nullptr) waiting->is_held_up = true;
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("cannot restore the lease of \"", job.name(), "\": it runs on ",
                                          absl::StrJoin(missing, ", "), ", which this daemon does not have"));
}

void Scheduler::Start() {
  {
    MutexLock lock(&mutex_);
    wake_ = true;
  }
  MutexLock lock(&thread_mutex_);
  thread_ = std::thread([this] { Run(); });
}

void Scheduler::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  MutexLock lock(&thread_mutex_);
  if (thread_.joinable()) thread_.join();
}

void Scheduler::Charge(const Holder& holder) {
  const absl::Time now = clock_->Now();
  const double held = absl::ToDoubleSeconds(clock_->Elapsed() - holder.leased_at);
  const std::string user = holder.job.user();
  const FairShare::Usage usage =
      usage_.Charge(user, held * holder.lease.share * static_cast<double>(holder.lease.devices.size()), now);
  store_->Write(
      [user, usage](Transaction& transaction) {
        return transaction.PutUsage(
            {user, static_cast<int64_t>(usage.device_seconds * 1e6), absl::ToUnixMicros(usage.as_of)});
      },
      [user](const absl::Status& status) {
        if (!status.ok()) spdlog::warn("cannot record the usage of \"{}\": {}", user, status.ToString());
      });
}

void Scheduler::ReleaseLease(const std::string& job_id, int32_t attempt, bool crashed) {
  MutexLock lock(&mutex_);
  const auto found = holders_.find(job_id);
  if (found == holders_.end() || found->second.job.attempt() != attempt) return;
  Charge(found->second);
  if (crashed) {
    for (const std::string& device : found->second.lease.devices) {
      device_records_.CountFault(device, found->second.job, usage_.usages().size() > 1);
    }
  } else if (found->second.succeeded) {
    for (const std::string& device : found->second.lease.devices) device_records_.ForgetFaults(device);
  }
  holders_.erase(found);
  inventory_->Release(job_id);
  if (WaitingJob* waiting = queue_.Find(job_id); waiting != nullptr) waiting->is_held_up = false;
  Changed();
}

void Scheduler::SetDeviceState(const std::string& device, v1::DeviceState state, const std::string& reason,
                               JobMachine::Done<v1::Device> done) {
  absl::StatusOr<StoredDevice> record;
  {
    MutexLock lock(&mutex_);
    record = device_records_.SetState(device, state, reason);
    if (record.ok()) Changed();
  }
  if (!record.ok()) return done(record.status());
  store_->Write([record = *record](Transaction& transaction) { return transaction.PutDevice(record); },
                [this, device, done = std::move(done)](absl::Status status) mutable {
                  if (!status.ok()) return done(std::move(status));
                  for (v1::Device& now : inventory_->Devices()) {
                    if (now.name() == device) return done(std::move(now));
                  }
                  done(absl::NotFoundError(absl::StrCat("there is no device \"", device, "\"")));
                });
}

void Scheduler::OnQuotasChanged() {
  MutexLock lock(&mutex_);
  Changed();
}

void Scheduler::OnMoved(const v1::Job& job) {
  // Scheduled handles the start.
  if (job.state() == v1::JOB_STATE_STARTING) return;
  MutexLock lock(&mutex_);
  if (job.state() == v1::JOB_STATE_QUEUED) return Enqueue(job, MonotonicNow());
  if (IsAtRest(job.state())) return OnRest(job);
  const auto found = holders_.find(JobId(job.name()));
  if (found == holders_.end()) return;
  Holder& holder = found->second;
  if (job.state() != v1::JOB_STATE_RUNNING) {
    if (!std::exchange(holder.ending, true)) Changed();
  } else if (job.spec().has_cluster()) {
    // The time in the cluster's queue does not count.
    holder.leased_at = clock_->Elapsed();
    holder.limit_at = holder.leased_at + LongestRemaining(job, absl::ZeroDuration());
    wake_ = true;
  }
}

void Scheduler::OnRest(const v1::Job& job) {
  const std::string id = JobId(job.name());
  Dequeue(id);
  if (const auto found = holders_.find(id); found != holders_.end() && !found->second.starting.has_value()) {
    found->second.ending = true;
    found->second.succeeded = job.state() == v1::JOB_STATE_SUCCEEDED;
    found->second.limit_at = absl::InfiniteDuration();
    // A cluster's nodes say nothing about this machine's speed.
    if (!found->second.job.spec().has_cluster())
      estimate_.Learn(found->second.job, clock_->Elapsed() - found->second.leased_at);
  }
  // The places of other jobs have changed.
  Changed();
}

void Scheduler::OnEvent(const v1::JobEvent& event) {
  if (!event.has_progress() && !event.has_priority_change()) return;
  const std::string id = JobId(event.job());
  MutexLock lock(&mutex_);
  if (event.has_priority_change()) return OnPriorityChange(id, event.priority_change().to());
  const auto found = holders_.find(id);
  if (found != holders_.end()) *found->second.job.mutable_progress() = event.progress();
}

void Scheduler::OnPriorityChange(const std::string& id, int priority) {
  if (const WaitingJob* waiting = queue_.Find(id); waiting != nullptr) {
    WaitingJob changed = *waiting;
    changed.priority = priority;
    changed.waits_since = MonotonicNow();
    queue_.Remove(id);
    AddToQueue(std::move(changed));
  }
  if (const auto found = holders_.find(id); found != holders_.end()) {
    found->second.job.set_priority(priority);
    if (found->second.starting.has_value()) {
      found->second.starting->priority = priority;
      found->second.starting->waits_since = MonotonicNow();
    }
  }
  Changed();
}

void Scheduler::Enqueue(const v1::Job& job, absl::Time waits_since) {
  WaitingJob waiting = WaitingJobOf(job);
  waiting.waits_since = waits_since;
  waiting.expected_run_time = estimate_.Remaining(job, absl::ZeroDuration());
  const auto holder = holders_.find(waiting.id);
  waiting.is_held_up = holder != holders_.end();
  if (waiting.is_held_up) {
    // It was preempted or its worker is lost. Its process is about to exit.
    holder->second.ending = true;
    holder->second.limit_at = absl::InfiniteDuration();
  }
  if (job.reason() == v1::STATE_REASON_RESTARTING) {
    waiting.restart_time = TimeOf(job.restart_time());
    waiting.restarts = job.restarts();
    waiting.max_restarts = job.spec().max_restarts();
    // The clock may have jumped while no daemon ran.
    const absl::Duration delay = std::min(waiting.restart_time - clock_->Now(), kLongestRestartDelay);
    waiting.is_delayed = delay > absl::ZeroDuration();
    if (waiting.is_delayed) delayed_[waiting.id] = clock_->Elapsed() + delay;
  }
  if (AddToQueue(std::move(waiting))) Changed();
}

bool Scheduler::AddToQueue(WaitingJob waiting) {
  const std::string id = waiting.id;
  const bool is_on_cluster = waiting.is_on_cluster;
  if (!queue_.Add(std::move(waiting))) return false;
  if (is_on_cluster) cluster_jobs_[*queue_.KeyOf(id)] = id;
  return true;
}

void Scheduler::Ping(absl::AnyInvocable<void()> done) {
  MutexLock lock(&mutex_);
  if (!stopping_) pings_.push_back(std::move(done));
}

void Scheduler::Run() {
  while (true) {
    std::vector<absl::AnyInvocable<void()>> pings;
    Orders orders;
    {
      MutexLock lock(&mutex_);
      // The store's answer may set retry_ during the wait. Then wait again, for a limited time.
      const bool retries = retry_;
      const auto has_work = [this, retries]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !pings_.empty() || (stopping_ ? unanswered_ == 0 : wake_ || retry_ != retries);
      };
      absl::Duration wait = retries ? kRetryAfter : absl::InfiniteDuration();
      if (!stopping_) {
        wait = std::min(
            wait, std::max(absl::ZeroDuration(),
                           std::min({NextTimeLimit(), next_raise_ - clock_->Elapsed(), NextRestart()})));
      }
      if (!mutex_.AwaitWithTimeout(absl::Condition(&has_work), wait) && retries) wake_ = true;
      if (stopping_ && unanswered_ == 0) return;
      pings.swap(pings_);
      if (!stopping_) {
        CollectTimeLimits(&orders);
        EndDelays();
        NoteRaises();
        if (std::exchange(wake_, false)) {
          retry_ = false;
          Place(&orders);
        }
      }
    }
    CarryOut(orders);
    for (absl::AnyInvocable<void()>& ping : pings) ping();
  }
}

Snapshot Scheduler::TakeSnapshot() const {
  Snapshot snapshot;
  snapshot.now = clock_->Now();
  snapshot.monotonic_now = MonotonicNow();
  snapshot.queue = &queue_;
  absl::flat_hash_map<std::string, int> positions;
  for (const v1::Device& device : inventory_->Devices()) {
    positions[device.name()] = static_cast<int>(snapshot.devices.size());
    snapshot.devices.push_back({device.name(), device.kind(), device.memory_bytes(), device.state()});
  }
  const auto user = [&](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> UserShare& {
    const auto [share, is_new] = snapshot.users.try_emplace(name);
    if (is_new) {
      share->second.device_seconds = usage_.DeviceSeconds(name, snapshot.now);
      if (options_.quota) share->second.max_devices = options_.quota(name).max_devices;
    }
    return share->second;
  };
  for (const auto& [key, group] : queue_.groups()) user(key.first);
  for (const auto& [id, holder] : holders_) {
    HoldingJob& job = snapshot.holding.emplace_back();
    job.id = id;
    job.user = holder.job.user();
    job.sweep = holder.job.sweep();
    job.priority = holder.job.priority();
    // A job on a cluster has no devices to give.
    job.preemptible =
        holder.job.spec().preemptible() && !holder.starting.has_value() && !holder.lease.devices.empty();
    job.ending = holder.ending;
    job.share = holder.lease.share;
    job.memory_bytes = holder.lease.memory_bytes;
    job.lease_time = holder.lease_time;
    const absl::Duration held = clock_->Elapsed() - holder.leased_at;
    if (holder.starting.has_value()) {
      job.expected_end = snapshot.now + holder.starting->expected_run_time;
      job.latest_end = snapshot.now + holder.starting->longest_run_time;
    } else {
      job.expected_end = snapshot.now + estimate_.Remaining(holder.job, held);
      job.latest_end = snapshot.now + LongestRemaining(holder.job, held);
    }
    for (const std::string& device : holder.lease.devices) job.devices.push_back(positions[device]);
    user(job.user).device_seconds +=
        absl::ToDoubleSeconds(held) * job.share * static_cast<double>(job.devices.size());
  }
  return snapshot;
}

void Scheduler::Hold(const WaitingJob& waiting, Lease lease, std::vector<std::string> devices_of_ranks,
                     absl::Time now, Orders* orders) {
  Holder holder;
  holder.job.set_name(JobName(waiting.id));
  holder.job.set_user(waiting.user);
  holder.job.set_sweep(waiting.sweep);
  holder.job.set_priority(waiting.priority);
  holder.lease = std::move(lease);
  holder.lease_time = now;
  holder.leased_at = clock_->Elapsed();
  holder.starting = waiting;
  orders->schedules.push_back({waiting.id, std::move(devices_of_ranks)});
  holders_[waiting.id] = std::move(holder);
  ++unanswered_;
}

void Scheduler::Place(Orders* orders) {
  PlaceOnClusters(orders);
  const Snapshot snapshot = TakeSnapshot();
  const Decision decision = policy_->Decide(snapshot);
  looked_at_changes_ = true;
  for (const Placement& placement : decision.placements) {
    const WaitingJob* waiting = queue_.Find(placement.job_id);
    if (waiting == nullptr) continue;
    Lease lease = {placement.devices, waiting->share, waiting->gang.memory_bytes()};
    // A wrong policy must not give a device twice.
    if (const absl::Status acquired = inventory_->Acquire(placement.job_id, lease); !acquired.ok()) {
      spdlog::error("cannot place a job job={}: {}", placement.job_id, acquired.ToString());
      continue;
    }
    Hold(*waiting, std::move(lease), DevicesOfRanks(waiting->gang, placement.devices), snapshot.now, orders);
    queue_.Start(placement.job_id, snapshot.monotonic_now, placement.was_longest);
  }
  queue_.NoteWaiting(decision.waiting, snapshot.monotonic_now);
  next_raise_ = queue_.NextRaise(snapshot.monotonic_now) - absl::UnixEpoch();
  for (const std::string& id : decision.preemptions) {
    const auto holder = holders_.find(id);
    if (holder == holders_.end() || holder->second.ending) continue;
    holder->second.ending = true;
    orders->preemptions.push_back(id);
  }
}

void Scheduler::CarryOut(const Orders& orders) {
  for (const Orders::Schedule& schedule : orders.schedules) {
    jobs_->Schedule(schedule.id, schedule.devices,
                    [this, id = schedule.id](const absl::StatusOr<v1::Job>& job) { Scheduled(id, job); });
  }
  for (const std::string& id : orders.preemptions) {
    jobs_->Preempt(id, "It makes room for a job of higher priority.",
                   [this, id](const absl::StatusOr<v1::Job>& job) { Preempted(id, job.status()); });
  }
  for (const std::string& id : orders.time_limits) {
    jobs_->Cancel(id, v1::STATE_REASON_TIME_LIMIT_EXCEEDED, [this, id](const absl::StatusOr<v1::Job>& job) {
      if (job.ok() || absl::IsFailedPrecondition(job.status()) || absl::IsNotFound(job.status())) return;
      MutexLock lock(&mutex_);
      if (const auto holder = holders_.find(id); holder != holders_.end()) {
        holder->second.limit_at = clock_->Elapsed() + kRetryAfter;
        wake_ = true;
      }
    });
  }
}

void Scheduler::Preempted(const std::string& id, const absl::Status& status) {
  if (status.ok()) return;
  MutexLock lock(&mutex_);
  const auto holder = holders_.find(id);
  // If the job has ended or was stopped by somebody else, an observer call already recorded it.
  if (holder == holders_.end() || absl::IsFailedPrecondition(status) || absl::IsNotFound(status)) return;
  holder->second.ending = false;
  retry_ = true;
}

void Scheduler::NoteStart(const std::string& id, const v1::Job& job) {
  MutexLock lock(&mutex_);
  // The job may have been paused and resumed meanwhile, and be in the queue again.
  Dequeue(id);
  const auto found = holders_.find(id);
  if (found == holders_.end()) return;
  Holder& holder = found->second;
  holder.job = Trimmed(job);
  holder.starting.reset();
  holder.ending = false;
  holder.lease_time = job.has_lease_time() ? TimeOf(job.lease_time()) : clock_->Now();
  holder.leased_at = clock_->Elapsed();
  if (!job.spec().has_cluster()) {
    holder.limit_at = holder.leased_at + LongestRemaining(job, absl::ZeroDuration());
    // Wake the thread, so that it waits for this time limit.
    pings_.emplace_back([] {});
  }
  // A job that arrived meanwhile may preempt it now.
  if (job.spec().preemptible() && !queue_.empty()) Changed();
}

void Scheduler::Scheduled(const std::string& id, const absl::StatusOr<v1::Job>& job) {
  if (job.ok()) {
    NoteStart(id, *job);
    std::vector<v1::Device> devices;
    const std::vector<v1::Device> all = inventory_->Devices();
    for (const std::string& name : job->devices()) {
      for (const v1::Device& device : all) {
        if (device.name() == name) devices.push_back(device);
      }
    }
    // Unlocked, because the starter may return the lease at once.
    starter_->Start(*job, devices);
  }
  MutexLock lock(&mutex_);
  --unanswered_;
  if (job.ok()) return;
  const auto found = holders_.find(id);
  std::optional<WaitingJob> waiting;
  if (found != holders_.end()) waiting = std::move(found->second.starting);
  holders_.erase(id);
  inventory_->Release(id);
  if (WaitingJob* again = queue_.Find(id); again != nullptr) again->is_held_up = false;
  looked_at_changes_ = true;
  if (absl::IsNotFound(job.status()) || absl::IsFailedPrecondition(job.status())) {
    // The job has ended or was paused.
    wake_ = true;
    return;
  }
  if (waiting.has_value()) AddToQueue(*std::move(waiting));
  retry_ = true;
}

absl::Status Scheduler::CheckCanRun(const std::string& user, const v1::JobSpec& spec,
                                    int64_t planned_memory_bytes) const {
  // A cluster has its own devices and quotas.
  if (spec.has_cluster()) return absl::OkStatus();
  v1::Job job;
  *job.mutable_spec()->mutable_replicas() = spec.replicas();
  job.set_planned_memory_bytes(planned_memory_bytes);
  const WaitingJob waiting = WaitingJobOf(job);
  const UserQuota quota = options_.quota ? options_.quota(user) : UserQuota();
  if (quota.max_devices > 0 && waiting.gang.devices > quota.max_devices) {
    return WithReason(
        absl::FailedPreconditionError(absl::StrCat(
            "spec.replicas: needs ", waiting.gang.devices, " devices, but the quota of \"", user, "\" is ",
            quota.max_devices, "; use fewer replicas, or ask an administrator for more devices")),
        "QUOTA_EXCEEDED");
  }
  Snapshot snapshot;
  const JobQueue queue;
  snapshot.queue = &queue;
  int excluded = 0;
  for (const v1::Device& device : inventory_->Devices()) {
    if (device.state() == v1::DEVICE_STATE_EXCLUDED) {
      ++excluded;
      continue;
    }
    snapshot.devices.push_back({device.name(), device.kind(), device.memory_bytes(), device.state()});
  }
  if (excluded == 0 || DevicePlan(snapshot).FitOf(waiting) != DevicePlan::Fit::kMissing)
    return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat(
          "spec.replicas: needs ", waiting.gang.devices, " devices, but too many are excluded from service (",
          excluded, " in all); 'tandem devices' says why, and an administrator can resume them")),
      "DEVICES_EXCLUDED");
}

}  // namespace tandem
