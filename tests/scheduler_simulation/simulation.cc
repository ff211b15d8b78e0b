#include "tests/scheduler_simulation/simulation.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/scheduler/fair_share.h"
#include "server/scheduler/inventory.h"

namespace tandem {
namespace {

absl::Duration ThreadTime() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return absl::DurationFromTimespec(now);
}

// Checks a condition that holds for every policy. Without it, the simulation would mean nothing.
void Require(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "simulation: %s\n", std::string(what).c_str());
  std::abort();
}

std::string UserName(int user) { return absl::StrCat("user-", user); }

class Simulator {
 public:
  Simulator(const std::vector<TraceJob>& trace, int devices, const PlacementPolicy& policy)
      : trace_(trace), policy_(policy), inventory_(MakeDevices(devices)), usage_(absl::Hours(24)) {
    for (const v1::Device& device : inventory_.Devices()) {
      positions_[device.name()] = static_cast<int>(slots_.size());
      slots_.push_back({device.name(), device.kind(), device.memory_bytes(), v1::DEVICE_STATE_ACTIVE});
    }
    for (const TraceJob& job : trace) users_ = std::max(users_, job.user + 1);
    held_.resize(users_);
    waiting_.resize(users_);
    runs_.resize(trace.size());
    score_.starts.resize(trace.size(), absl::InfiniteDuration());
    for (const TraceJob& job : trace) runs_[job.number].left = job.run_time;
  }

  Score Run() {
    size_t next = 0;
    while (next < trace_.size() || !ends_.empty()) {
      absl::Time time = absl::InfiniteFuture();
      if (next < trace_.size()) time = begin_ + trace_[next].arrival;
      if (!ends_.empty()) time = std::min(time, ends_.begin()->first);
      Pass(time);
      while (!ends_.empty() && ends_.begin()->first == now_) End();
      while (next < trace_.size() && begin_ + trace_[next].arrival == now_) Arrive(trace_[next++]);
      Decide();
    }
    Require(queue_.empty(), absl::StrCat(queue_.size(), " jobs never started"));
    Finish();
    return score_;
  }

 private:
  // The present state of a job of the trace.
  struct JobRun {
    absl::Time create_time;
    absl::Time waits_since;
    // The total of all finished waits.
    absl::Duration waited;
    // The remaining run time.
    absl::Duration left;
  };

  static std::vector<v1::Device> MakeDevices(int count) {
    std::vector<v1::Device> devices(count);
    for (int i = 0; i < count; ++i) {
      devices[i].set_name(absl::StrCat("devices/gpu:", i));
      devices[i].set_kind(v1::DEVICE_KIND_GPU);
      devices[i].set_memory_bytes(int64_t{80} << 30);
    }
    return devices;
  }

  // Advances the time, and adds up the held devices.
  void Pass(absl::Time time) {
    const absl::Duration step = time - now_;
    const double seconds = absl::ToDoubleSeconds(step);
    if (!queue_.empty()) {
      waiting_seconds_ += seconds;
      held_while_waiting_ += seconds * busy_;
    }
    if (std::all_of(waiting_.begin(), waiting_.end(), [](int jobs) { return jobs > 0; })) {
      score_.contended += step;
      for (const auto& [id, job] : holding_) held_[trace_[Number(id)].user] += seconds * job.devices.size();
    }
    now_ = time;
  }

  static int Number(const std::string& id) {
    int number = 0;
    Require(absl::SimpleAtoi(id.substr(4), &number), id);
    return number;
  }

  void Arrive(const TraceJob& job) {
    runs_[job.number].create_time = now_;
    Wait(job);
  }

  // Starts a wait of the job now.
  void Wait(const TraceJob& job) {
    JobRun& run = runs_[job.number];
    run.waits_since = now_;
    WaitingJob waiting;
    waiting.id = absl::StrCat("job-", job.number);
    waiting.user = UserName(job.user);
    waiting.priority = job.priority;
    waiting.create_time = run.create_time;
    waiting.waits_since = now_;
    waiting.gang.device_kind = v1::DEVICE_KIND_GPU;
    waiting.gang.devices = waiting.gang.replicas = job.devices;
    const absl::Duration done = job.run_time - run.left;
    waiting.longest_run_time = job.limit - done;
    waiting.expected_run_time = std::max(absl::ZeroDuration(), job.estimate - done);
    Require(queue_.Add(std::move(waiting)), "a job came twice");
    ++waiting_[job.user];
    score_.longest_queue = std::max(score_.longest_queue, static_cast<int>(queue_.size()));
  }

  void End() {
    const std::string id = ends_.begin()->second;
    ends_.erase(ends_.begin());
    const auto job = holding_.find(id);
    const double seconds = absl::ToDoubleSeconds(now_ - job->second.lease_time);
    usage_.Charge(job->second.user, seconds * job->second.devices.size(), now_);
    busy_ -= static_cast<int>(job->second.devices.size());
    Require(!inventory_.Release(id).empty(), "a job held nothing");
    JobRun& run = runs_[Number(id)];
    run.left -= now_ - job->second.lease_time;
    holding_.erase(job);
    if (run.left > absl::ZeroDuration()) {
      Wait(trace_[Number(id)]);
    } else {
      ++score_.ended;
    }
  }

  // The job frees its devices soon, or ends before.
  void Preempt(const std::string& id) {
    HoldingJob& job = holding_.at(id);
    Require(job.preemptible && !job.ending, "a job was preempted that does not allow it, or twice");
    job.ending = true;
    ++score_.preemptions;
    const absl::Time end = job.lease_time + runs_[Number(id)].left;
    if (end <= now_ + kTimeToMakeRoom) {
      ++score_.preempted_ends;
      return;
    }
    Require(ends_.erase({end, id}) == 1, "a job that holds devices has no end");
    ends_.emplace(now_ + kTimeToMakeRoom, id);
  }

  Snapshot TakeSnapshot() const {
    Snapshot snapshot;
    snapshot.now = snapshot.monotonic_now = now_;
    snapshot.devices = slots_;
    snapshot.queue = &queue_;
    for (int user = 0; user < users_; ++user) {
      snapshot.users[UserName(user)].device_seconds = usage_.DeviceSeconds(UserName(user), now_);
    }
    for (const auto& [id, job] : holding_) {
      snapshot.users[job.user].device_seconds +=
          absl::ToDoubleSeconds(now_ - job.lease_time) * job.devices.size();
      snapshot.holding.push_back(job);
    }
    return snapshot;
  }

  void Decide() {
    const absl::Duration before = ThreadTime();
    const Snapshot snapshot = TakeSnapshot();
    const Decision decision = policy_.Decide(snapshot);
    times_.push_back({queue_.size(), ThreadTime() - before});
    CountInversions(decision);
    for (const Reservation& reservation : decision.reservations) {
      absl::Time& promised = promised_.try_emplace(reservation.job_id, reservation.start).first->second;
      promised = std::min(promised, reservation.start);
    }
    for (const Placement& placement : decision.placements) Start(placement);
    queue_.NoteWaiting(decision.waiting, now_);
    for (const std::string& id : decision.preemptions) Preempt(id);
  }

  void Start(const Placement& placement) {
    const TraceJob& job = trace_[Number(placement.job_id)];
    Require(static_cast<int>(placement.devices.size()) == job.devices, "a part of a gang started");
    const absl::Status acquired = inventory_.Acquire(placement.job_id, {placement.devices, 1.0, 0});
    Require(acquired.ok(), acquired.ToString());
    HoldingJob& holding = holding_[placement.job_id];
    holding.id = placement.job_id;
    holding.user = UserName(job.user);
    holding.priority = job.priority;
    holding.preemptible = job.preemptible;
    for (const std::string& device : placement.devices) holding.devices.push_back(positions_.at(device));
    holding.lease_time = now_;
    JobRun& run = runs_[job.number];
    const WaitingJob& waiting = *queue_.Find(placement.job_id);
    holding.expected_end = now_ + waiting.expected_run_time;
    holding.latest_end = now_ + waiting.longest_run_time;
    absl::Duration& start = score_.starts[job.number];
    start = std::min(start, now_ - begin_);
    ends_.emplace(now_ + run.left, placement.job_id);
    busy_ += job.devices;
    const absl::Duration wait = now_ - run.waits_since;
    run.waited += wait;
    if (placement.was_longest) {
      const JobQueue::Group& group = queue_.groups().at({waiting.user, waiting.priority});
      score_.raised_too_much +=
          queue_.RaisedBy(group, now_) > absl::FDivDuration(run.waited, kAgeingInterval);
    }
    score_.longest_wait = std::max(score_.longest_wait, wait);
    score_.mean_wait += wait;
    ++score_.started;
    if (job.priority > 0) {
      score_.mean_urgent_wait += wait;
      ++urgent_started_;
    }
    if (const auto promised = promised_.find(placement.job_id); promised != promised_.end()) {
      score_.late += now_ > promised->second;
      promised_.erase(promised);
    }
    Require(queue_.Start(placement.job_id, now_, placement.was_longest), "a job started that does not wait");
    --waiting_[job.user];
  }

  // By group: the job that its wait raises, and its raised priority, as the policy's description defines
  // them.
  using RaisedJobs = absl::flat_hash_map<const JobQueue::Group*, std::pair<const WaitingJob*, int>>;
  RaisedJobs FindRaised() const {
    RaisedJobs raised;
    for (const auto& [key, group] : queue_.groups()) {
      const WaitingJob& longest = group.jobs.at(group.by_wait.begin()->second);
      raised[&group] = {&longest, key.second + queue_.RaisedBy(group, now_)};
    }
    return raised;
  }

  // Call this before the decision takes effect.
  void CountInversions(const Decision& decision) {
    if (decision.placements.empty()) return;
    const RaisedJobs raised = FindRaised();
    const auto level_of = [&](const JobQueue::Group& group, const WaitingJob& job) {
      const auto found = raised.find(&group);
      return found != raised.end() && found->second.first == &job ? found->second.second : job.priority;
    };
    absl::flat_hash_set<std::string> provided;
    for (const Placement& placement : decision.placements) provided.insert(placement.job_id);
    absl::flat_hash_set<std::string> reserved;
    for (const Reservation& reservation : decision.reservations) reserved.insert(reservation.job_id);
    for (const Placement& placement : decision.placements) {
      const WaitingJob& job = *queue_.Find(placement.job_id);
      const int level = level_of(queue_.groups().at({job.user, job.priority}), job);
      bool passed_reserved = false;
      bool passed_by_age = false;
      bool inverted = false;
      for (const auto& [key, group] : queue_.groups()) {
        if (key.second <= job.priority) continue;
        for (const auto& [age, other] : group.jobs) {
          if (provided.contains(other.id)) continue;
          if (reserved.contains(other.id)) {
            passed_reserved = true;
          } else if (level >= level_of(group, other)) {
            passed_by_age = true;
          } else {
            inverted = true;
          }
        }
      }
      score_.passed_reserved += passed_reserved;
      score_.passed_by_age += passed_by_age;
      score_.inversions += inverted;
    }
  }

  void Finish() {
    score_.makespan = now_ - begin_ - trace_.front().arrival;
    score_.mean_wait /= std::max(1, score_.started);
    score_.utilisation_while_waiting =
        waiting_seconds_ == 0 ? 1 : held_while_waiting_ / (waiting_seconds_ * slots_.size());
    double all = 0;
    for (const double seconds : held_) all += seconds;
    for (const double seconds : held_) {
      if (all > 0) score_.worst_share = std::max(score_.worst_share, std::abs(seconds / (all / users_) - 1));
    }
    score_.mean_urgent_wait /= std::max(1, urgent_started_);
    std::vector<absl::Duration> all_times, long_times;
    for (const auto& [queued, time] : times_) {
      all_times.push_back(time);
      if (queued * 10 >= static_cast<size_t>(score_.longest_queue) * 9) long_times.push_back(time);
    }
    std::sort(all_times.begin(), all_times.end());
    std::sort(long_times.begin(), long_times.end());
    score_.decisions = static_cast<int>(all_times.size());
    score_.decision_median = all_times[all_times.size() / 2];
    score_.decision_p99 = all_times[all_times.size() * 99 / 100];
    score_.decision_longest = all_times.back();
    score_.long_queue_decisions = static_cast<int>(long_times.size());
    score_.long_queue_p99 = long_times[long_times.size() * 99 / 100];
  }

  const std::vector<TraceJob>& trace_;
  const PlacementPolicy& policy_;
  Inventory inventory_;
  FairShare usage_;
  std::vector<DeviceSlot> slots_;
  absl::flat_hash_map<std::string, int> positions_;
  JobQueue queue_{kAgeingInterval};
  // By number.
  std::vector<JobRun> runs_;
  std::map<std::string, HoldingJob> holding_;
  std::set<std::pair<absl::Time, std::string>> ends_;
  absl::flat_hash_map<std::string, absl::Time> promised_;
  const absl::Time begin_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Time now_ = begin_;
  int users_ = 0;
  int busy_ = 0;
  // By user: waiting jobs, and device-seconds that were held while all users had waiting jobs.
  std::vector<int> waiting_;
  std::vector<double> held_;
  double waiting_seconds_ = 0;
  double held_while_waiting_ = 0;
  int urgent_started_ = 0;
  // The number of waiting jobs at each decision, and the time of the decision.
  std::vector<std::pair<size_t, absl::Duration>> times_;
  Score score_;
};

}  // namespace

Score Simulate(const std::vector<TraceJob>& trace, int devices, const PlacementPolicy& policy) {
  return Simulator(trace, devices, policy).Run();
}

absl::Duration IdealMakespan(const std::vector<TraceJob>& trace, int devices) {
  // A tank of work that runs empty as fast as all devices can.
  double work = 0;
  double now = absl::ToDoubleSeconds(trace.front().arrival);
  for (const TraceJob& job : trace) {
    const double arrival = absl::ToDoubleSeconds(job.arrival);
    work = std::max(0.0, work - (arrival - now) * devices);
    now = arrival;
    work += absl::ToDoubleSeconds(job.run_time) * job.devices;
  }
  return absl::Seconds(now + work / devices) - trace.front().arrival;
}

}  // namespace tandem
