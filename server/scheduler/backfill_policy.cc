#include "server/scheduler/backfill_policy.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/scheduler/device_plan.h"
#include "server/scheduler/queue_order.h"

namespace tandem {
namespace {

// How many devices each user holds, while jobs are started.
class Quotas {
 public:
  explicit Quotas(const Snapshot& snapshot) : snapshot_(snapshot) {
    for (const HoldingJob& job : snapshot.holding) held_[job.user] += static_cast<int>(job.devices.size());
  }
  // 0: any number.
  int MaxDevices(const std::string& user) const {
    const auto share = snapshot_.users.find(user);
    return share == snapshot_.users.end() ? 0 : share->second.max_devices;
  }
  int Held(const std::string& user) const {
    const auto held = held_.find(user);
    return held == held_.end() ? 0 : held->second;
  }
  bool Allows(const WaitingJob& job) const {
    const int most = MaxDevices(job.user);
    return most == 0 || Held(job.user) + job.gang.devices <= most;
  }
  void Add(const WaitingJob& job) { held_[job.user] += job.gang.devices; }

 private:
  const Snapshot& snapshot_;
  absl::flat_hash_map<std::string, int> held_;
};

// How many jobs of each sweep hold devices, while jobs are started.
class SweepLimits {
 public:
  explicit SweepLimits(const Snapshot& snapshot) {
    for (const HoldingJob& job : snapshot.holding) {
      if (!job.sweep.empty()) ++running_[job.sweep];
    }
  }
  int Running(const std::string& sweep) const {
    const auto running = running_.find(sweep);
    return running == running_.end() ? 0 : running->second;
  }
  bool Allows(const WaitingJob& job) const {
    return job.sweep_max_running <= 0 || Running(job.sweep) < job.sweep_max_running;
  }
  void Add(const WaitingJob& job) {
    if (!job.sweep.empty()) ++running_[job.sweep];
  }

 private:
  absl::flat_hash_map<std::string, int> running_;
};

// "2 CPU devices with 1.50 GiB of memory each".
std::string Needs(const WaitingJob& job, v1::DeviceKind kind) {
  const GangRequest& gang = job.gang;
  std::string text =
      absl::StrCat(gang.devices, " ", absl::StripPrefix(v1::DeviceKind_Name(kind), "DEVICE_KIND_"),
                   gang.devices == 1 ? " device" : " devices");
  if (!gang.names.empty()) {
    text = gang.names.front();
    for (size_t i = 1; i < gang.names.size(); ++i) {
      absl::StrAppend(&text, i + 1 == gang.names.size() ? " and " : ", ", gang.names[i]);
    }
  }
  if (gang.memory_bytes() > 0) {
    absl::StrAppend(&text, absl::StrFormat(" with %.2f GiB of memory", gang.memory_bytes() / double{1 << 30}),
                    gang.devices == 1 ? "" : " each");
  }
  return text;
}

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

int CountAll(const Snapshot& snapshot, v1::DeviceKind kind, const WaitingJob& job) {
  return static_cast<int>(
      std::count_if(snapshot.devices.begin(), snapshot.devices.end(), [&](const DeviceSlot& device) {
        const auto& names = job.gang.names;
        const bool wanted = names.empty() ? device.kind == kind
                                          : std::find(names.begin(), names.end(), device.name) != names.end();
        return wanted && device.memory_bytes >= job.gang.memory_bytes();
      }));
}

}  // namespace

Decision BackfillPolicy::Decide(const Snapshot& snapshot) const {
  Decision decision;
  if (snapshot.queue->empty()) return decision;
  DevicePlan plan(snapshot);
  Quotas quotas(snapshot);
  SweepLimits sweeps(snapshot);
  QueueOrder order(snapshot);
  int reservations = 0;
  int looked_at = 0;
  // The level of the first job that is passed over without a reservation.
  int bar = INT_MIN;
  while (const WaitingJob* job = order.Next()) {
    const bool may_preempt = job->priority > plan.lowest_preemptible();
    if (!plan.HasRoom() && !may_preempt) {
      // Levels fall, and no priority is above its level.
      if (order.level() <= plan.lowest_preemptible() || ++looked_at >= options_.most_backfilled) break;
      continue;
    }
    if (order.level() < bar) break;
    if (job->is_held_up || job->is_delayed || !quotas.Allows(*job) || !sweeps.Allows(*job) ||
        plan.FitOf(*job) != DevicePlan::Fit::kFits) {
      continue;
    }
    if (const std::vector<int> devices = plan.Start(*job); !devices.empty()) {
      Placement& placement = decision.placements.emplace_back();
      placement.job_id = job->id;
      for (const int device : devices) placement.devices.push_back(snapshot.devices[device].name);
      quotas.Add(*job);
      sweeps.Add(*job);
    } else if (reservations < options_.reservations) {
      ++reservations;
      if (may_preempt && plan.Preempt(*job, &decision.preemptions)) {
        decision.reservations.push_back({job->id, snapshot.now});
      } else {
        decision.reservations.push_back({job->id, plan.Reserve(*job)});
      }
    } else {
      bar = std::max(bar, order.level());
      if (++looked_at >= options_.most_backfilled) break;
    }
  }
  return decision;
}

std::vector<Explanation> BackfillPolicy::Explain(const Snapshot& snapshot) const {
  std::vector<Explanation> explanations;
  explanations.reserve(snapshot.queue->size());
  DevicePlan plan(snapshot);
  Quotas quotas(snapshot);
  SweepLimits sweeps(snapshot);
  QueueOrder order(snapshot);
  // The first that waits for devices.
  std::string first;
  while (const WaitingJob* job = order.Next()) {
    Explanation& explanation = explanations.emplace_back();
    explanation.job_id = job->id;
    explanation.raised_by = order.level() - job->priority;
    v1::Waiting& waiting = explanation.waiting;
    const int position = static_cast<int>(explanations.size());
    waiting.set_position(position);
    const auto because = [&](v1::Waiting::Reason reason, std::string message) {
      waiting.set_reason(reason);
      waiting.set_message(std::move(message));
    };
    const v1::DeviceKind kind = plan.KindFor(*job);
    const DevicePlan::Fit fit = plan.FitOf(*job);
    if (fit == DevicePlan::Fit::kMissing) {
      because(v1::Waiting::REASON_DEVICES_MISSING,
              absl::StrCat("Needs ", Needs(*job, kind), "; this daemon has ", CountAll(snapshot, kind, *job),
                           "."));
      continue;
    }
    if (fit == DevicePlan::Fit::kOutOfService) {
      because(v1::Waiting::REASON_DEVICES_OUT_OF_SERVICE,
              absl::StrCat("Needs ", Needs(*job, kind), "; of the ", CountAll(snapshot, kind, *job),
                           " that this daemon has, ", plan.CountSuitable(*job),
                           " are in service: the others are drained or excluded."));
      continue;
    }
    if (job->is_delayed) {
      const double seconds = std::max(0.0, absl::ToDoubleSeconds(job->restart_time - snapshot.now));
      because(v1::Waiting::REASON_RESTART_DELAY,
              absl::StrFormat("Its worker was lost; it starts again in %.0f s, restart %d of %d.",
                              std::ceil(seconds), job->restarts, job->max_restarts));
      *waiting.mutable_estimated_start_time() = ToTimestamp(std::max(job->restart_time, snapshot.now));
      continue;
    }
    if (job->is_held_up) {
      because(v1::Waiting::REASON_LAST_ATTEMPT_ENDING, "The worker of its last attempt is not gone yet.");
      continue;
    }
    if (!quotas.Allows(*job)) {
      because(v1::Waiting::REASON_QUOTA,
              absl::StrCat("\"", job->user, "\" holds ", quotas.Held(job->user), " of at most ",
                           quotas.MaxDevices(job->user), " devices, and it needs ", job->gang.devices, "."));
      continue;
    }
    if (!sweeps.Allows(*job)) {
      because(v1::Waiting::REASON_SWEEP_LIMIT,
              absl::StrCat(sweeps.Running(job->sweep), " of at most ", job->sweep_max_running, " jobs of \"",
                           job->sweep, "\" hold devices."));
      continue;
    }
    const int room = plan.CountRoom(*job);
    const int suitable = plan.CountSuitable(*job);
    absl::Time start = snapshot.now;
    std::vector<std::string> preempted;
    if (!plan.Start(*job).empty()) {
      quotas.Add(*job);
      sweeps.Add(*job);
      because(v1::Waiting::REASON_STARTING, "It is about to start.");
    } else if (job->priority > plan.lowest_preemptible() && plan.Preempt(*job, &preempted)) {
      because(v1::Waiting::REASON_PREEMPTING,
              "Jobs of lower priority write their checkpoints to make room for it.");
    } else {
      if (first.empty()) {
        because(v1::Waiting::REASON_DEVICES_BUSY,
                absl::StrCat("Needs ", Needs(*job, kind), "; ", room, " of ", suitable, " free."));
      } else {
        because(v1::Waiting::REASON_BEHIND_OTHERS,
                absl::StrCat("Number ", position, " in the queue; \"jobs/", first, "\" goes first."));
      }
      start = plan.Reserve(*job);
      if (first.empty()) first = job->id;
    }
    if (start != absl::InfiniteFuture()) *waiting.mutable_estimated_start_time() = ToTimestamp(start);
  }
  return explanations;
}

}  // namespace tandem
