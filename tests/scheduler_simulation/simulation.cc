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

// For what must hold whatever the policy: the simulation would mean nothing otherwise.
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
  }

  Score Run() {
    const absl::Time begin = absl::FromUnixSeconds(1'700'000'000);
    now_ = begin;
    size_t next = 0;
    while (next < trace_.size() || !ends_.empty()) {
      absl::Time time = absl::InfiniteFuture();
      if (next < trace_.size()) time = begin + trace_[next].arrival;
      if (!ends_.empty()) time = std::min(time, ends_.begin()->first);
      Pass(time);
      while (!ends_.empty() && ends_.begin()->first == now_) End();
      while (next < trace_.size() && begin + trace_[next].arrival == now_) Arrive(trace_[next++]);
      Decide();
    }
    Require(queue_.empty(), absl::StrCat(queue_.size(), " jobs never started"));
    Finish(begin);
    return score_;
  }

 private:
  static std::vector<v1::Device> MakeDevices(int count) {
    std::vector<v1::Device> devices(count);
    for (int i = 0; i < count; ++i) {
      devices[i].set_name(absl::StrCat("devices/gpu:", i));
      devices[i].set_kind(v1::DEVICE_KIND_GPU);
      devices[i].set_memory_bytes(int64_t{80} << 30);
    }
    return devices;
  }

  // Lets time pass, and counts what was held meanwhile.
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
    WaitingJob waiting;
    waiting.id = absl::StrCat("job-", job.number);
    waiting.user = UserName(job.user);
    waiting.priority = job.priority;
    waiting.create_time = now_;
    waiting.gang.device_kind = v1::DEVICE_KIND_GPU;
    waiting.gang.devices = waiting.gang.replicas = job.devices;
    waiting.run_time = job.limit;
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
    holding_.erase(job);
    ++score_.ended;
  }

  Snapshot TakeSnapshot() const {
    Snapshot snapshot;
    snapshot.now = now_;
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
    times_.push_back(ThreadTime() - before);
    Require(decision.preemptions.empty(), "a job was preempted that does not allow it");
    CountInversions(decision);
    for (const Reservation& reservation : decision.reservations)
      promised_.try_emplace(reservation.job_id, reservation.start);
    for (const Placement& placement : decision.placements) Start(placement);
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
    for (const std::string& device : placement.devices) holding.devices.push_back(positions_.at(device));
    holding.lease_time = now_;
    holding.expected_end = now_ + job.limit;
    ends_.emplace(now_ + job.run_time, placement.job_id);
    busy_ += job.devices;
    const absl::Duration wait = now_ - queue_.Find(placement.job_id)->create_time;
    score_.longest_wait = std::max(score_.longest_wait, wait);
    score_.mean_wait += wait;
    ++score_.started;
    if (const auto promised = promised_.find(placement.job_id);
        promised != promised_.end() && now_ > promised->second) {
      ++score_.late;
    }
    Require(queue_.Start(placement.job_id, now_), "a job started that does not wait");
    --waiting_[job.user];
  }

  // Its priority with what its wait has raised it by, as the policy's description says.
  int LevelOf(const WaitingJob& job) const {
    const JobQueue::Group& group = queue_.groups().at({job.user, job.priority});
    if (group.jobs.begin()->second.id != job.id) return job.priority;
    return job.priority + queue_.RaisedBy(group, now_);
  }

  // Before what was decided is done.
  void CountInversions(const Decision& decision) {
    if (decision.placements.empty()) return;
    absl::flat_hash_set<std::string> provided;
    for (const Placement& placement : decision.placements) provided.insert(placement.job_id);
    absl::flat_hash_set<std::string> reserved;
    for (const Reservation& reservation : decision.reservations) reserved.insert(reservation.job_id);
    for (const Placement& placement : decision.placements) {
      const WaitingJob& job = *queue_.Find(placement.job_id);
      bool passed_reserved = false;
      bool passed_by_age = false;
      bool inverted = false;
      for (const auto& [key, group] : queue_.groups()) {
        if (key.second <= job.priority) continue;
        for (const auto& [age, other] : group.jobs) {
          if (provided.contains(other.id)) continue;
          if (reserved.contains(other.id)) {
            passed_reserved = true;
          } else if (LevelOf(job) >= LevelOf(other)) {
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

  void Finish(absl::Time begin) {
    score_.makespan = now_ - begin - trace_.front().arrival;
    score_.mean_wait /= std::max(1, score_.started);
    score_.utilisation_while_waiting =
        waiting_seconds_ == 0 ? 1 : held_while_waiting_ / (waiting_seconds_ * slots_.size());
    double all = 0;
    for (const double seconds : held_) all += seconds;
    for (const double seconds : held_) {
      if (all > 0) score_.worst_share = std::max(score_.worst_share, std::abs(seconds / (all / users_) - 1));
    }
    std::sort(times_.begin(), times_.end());
    score_.decisions = static_cast<int>(times_.size());
    score_.decision_median = times_[times_.size() / 2];
    score_.decision_p99 = times_[times_.size() * 99 / 100];
    score_.decision_longest = times_.back();
  }

  const std::vector<TraceJob>& trace_;
  const PlacementPolicy& policy_;
  Inventory inventory_;
  FairShare usage_;
  std::vector<DeviceSlot> slots_;
  absl::flat_hash_map<std::string, int> positions_;
  JobQueue queue_;
  std::map<std::string, HoldingJob> holding_;
  std::set<std::pair<absl::Time, std::string>> ends_;
  absl::flat_hash_map<std::string, absl::Time> promised_;
  absl::Time now_;
  int users_ = 0;
  int busy_ = 0;
  // By user: jobs that wait, and device-seconds held while all users had some.
  std::vector<int> waiting_;
  std::vector<double> held_;
  double waiting_seconds_ = 0;
  double held_while_waiting_ = 0;
  std::vector<absl::Duration> times_;
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
