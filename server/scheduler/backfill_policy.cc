#include "server/scheduler/backfill_policy.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "server/scheduler/device_plan.h"
#include "server/scheduler/queue_order.h"
#include "server/scheduler/usage_limits.h"
#include "server/store/records.h"

namespace tandem {
namespace {

// For example "2 CPU devices with 1.50 GiB of memory each".
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

Readiness ReadinessOf(const WaitingJob& job, const UsageLimits& limits, DevicePlan& plan) {
  if (job.is_held_up || job.is_delayed || !limits.SweepAllows(job)) return Readiness::kHeldBack;
  if (!limits.QuotaCouldAllow(job) || plan.FitOf(job) != DevicePlan::Fit::kFits) return Readiness::kHeldBack;
  return limits.QuotaAllows(job) ? Readiness::kReady : Readiness::kHeldByQuota;
}

v1::Waiting Because(v1::Waiting::Reason reason, std::string message) {
  v1::Waiting waiting;
  waiting.set_reason(reason);
  waiting.set_message(std::move(message));
  return waiting;
}

std::string DescribeQuota(const WaitingJob& job, const UsageLimits& limits) {
  if (const std::string kept_for = limits.QuotaKeptFor(job.user); !kept_for.empty()) {
    return absl::StrCat("The quota of \"", job.user, "\" is kept for \"", JobName(kept_for),
                        "\", which is ahead of it.");
  }
  return absl::StrCat("\"", job.user, "\" holds ", limits.Held(job.user), " of at most ",
                      limits.MaxDevices(job.user), " devices, and it needs ", job.gang.devices, ".");
}

// Returns why a job may not start now, however many devices are free. nullopt if it may.
std::optional<v1::Waiting> ExplainHeldBack(const WaitingJob& job, absl::Time now, const UsageLimits& limits,
                                           DevicePlan& plan) {
  const v1::DeviceKind kind = plan.KindFor(job);
  switch (plan.FitOf(job)) {
    case DevicePlan::Fit::kMissing:
      return Because(v1::Waiting::REASON_DEVICES_MISSING,
                     absl::StrCat("Needs ", Needs(job, kind), "; this daemon has ", plan.CountAll(job), "."));
    case DevicePlan::Fit::kOutOfService:
      return Because(
          v1::Waiting::REASON_DEVICES_OUT_OF_SERVICE,
          absl::StrCat("Needs ", Needs(job, kind), "; ", plan.CountSuitable(job), " of this daemon's ",
                       plan.CountAll(job), " are in service, the others are drained or excluded."));
    case DevicePlan::Fit::kFits:
      break;
  }
  if (job.is_delayed) {
    const double seconds = std::max(0.0, absl::ToDoubleSeconds(job.restart_time - now));
    v1::Waiting waiting =
        Because(v1::Waiting::REASON_RESTART_DELAY,
                absl::StrFormat("Its worker was lost; it starts again in %.0f s or later, restart %d of %d.",
                                std::ceil(seconds), job.restarts, job.max_restarts));
    *waiting.mutable_estimated_start_time() = ToTimestamp(std::max(job.restart_time, now));
    return waiting;
  }
  if (job.is_held_up) {
    return Because(v1::Waiting::REASON_LAST_ATTEMPT_ENDING,
                   "The worker of its last attempt has not ended yet.");
  }
  if (!limits.QuotaAllows(job)) return Because(v1::Waiting::REASON_QUOTA, DescribeQuota(job, limits));
  if (!limits.SweepAllows(job)) {
    return Because(v1::Waiting::REASON_SWEEP_LIMIT,
                   absl::StrCat(limits.Running(job.sweep), " of at most ", job.sweep_max_running,
                                " jobs of \"", job.sweep, "\" hold devices."));
  }
  return std::nullopt;
}

// Sets the times at which a job probably starts, and starts at the latest. InfiniteFuture: unknown.
void SetStart(absl::Time now, absl::Time expected, absl::Time latest, v1::Waiting* waiting) {
  if (expected != absl::InfiniteFuture())
    *waiting->mutable_estimated_start_time() = ToTimestamp(std::min(expected, latest));
  // If the latest start has passed, its time limits were exceeded, and it means nothing.
  if (latest != absl::InfiniteFuture() && latest > now)
    *waiting->mutable_latest_start_time() = ToTimestamp(latest);
}

}  // namespace

Decision BackfillPolicy::Decide(const Snapshot& snapshot) const {
  Decision decision;
  if (snapshot.queue->empty()) return decision;
  DevicePlan plan(snapshot);
  UsageLimits limits(snapshot);
  const auto readiness = [&](const WaitingJob& job) { return ReadinessOf(job, limits, plan); };
  QueueOrder order(snapshot, readiness);
  int reservations = 0;
  int looked_at = 0;
  // The level of the first job that must wait without a reservation.
  int bar = INT_MIN;
  while (const WaitingJob* job = order.Next()) {
    const bool may_preempt = job->priority > plan.lowest_preemptible();
    const bool may_start = plan.HasRoom() || may_preempt;
    // The order's levels fall, and no job's priority is above its level.
    if (!may_start && (order.level() <= plan.lowest_preemptible() || ++looked_at >= options_.most_backfilled))
      break;
    if (order.level() < bar) break;
    const Readiness is = readiness(*job);
    if (is == Readiness::kHeldByQuota) limits.KeepQuota(*job);
    if (is != Readiness::kReady) continue;
    if (!may_start) {
      order.Charge();
      continue;
    }
    if (const std::vector<int> devices = plan.Start(*job); !devices.empty()) {
      Placement& placement = decision.placements.emplace_back();
      placement.job_id = job->id;
      for (const int device : devices) placement.devices.push_back(snapshot.devices[device].name);
      limits.Add(*job);
      placement.was_longest = order.Start();
      continue;
    }
    order.Charge();
    if (reservations < options_.reservations) {
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
  decision.waiting = order.Waiting();
  return decision;
}

std::vector<Explanation> BackfillPolicy::Explain(const Snapshot& snapshot) const {
  std::vector<Explanation> explanations;
  explanations.reserve(snapshot.queue->size());
  // Only a job that Decide would start now is said to start.
  const Decision decision = Decide(snapshot);
  absl::flat_hash_set<absl::string_view> placed;
  for (const Placement& placement : decision.placements) placed.insert(placement.job_id);
  DevicePlan plan(snapshot);
  DevicePlan forecast(snapshot, DevicePlan::Times::kExpected);
  UsageLimits limits(snapshot);
  const auto readiness = [&](const WaitingJob& job) { return ReadinessOf(job, limits, plan); };
  QueueOrder order(snapshot, readiness);
  // The first job that waits for devices.
  std::string first;
  while (const WaitingJob* job = order.Next()) {
    Explanation& explanation = explanations.emplace_back();
    explanation.job_id = job->id;
    explanation.raised_by = order.level() - job->priority;
    v1::Waiting& waiting = explanation.waiting;
    const auto position = static_cast<int>(explanations.size());
    if (std::optional<v1::Waiting> held = ExplainHeldBack(*job, snapshot.now, limits, plan);
        held.has_value()) {
      waiting = *std::move(held);
      if (readiness(*job) == Readiness::kHeldByQuota) limits.KeepQuota(*job);
    } else if (placed.contains(job->id)) {
      forecast.Take(plan.Start(*job), *job);
      limits.Add(*job);
      order.Start();
      waiting = Because(v1::Waiting::REASON_STARTING, "It is about to start.");
      SetStart(snapshot.now, snapshot.now, absl::InfiniteFuture(), &waiting);
      explanation.is_to_act = true;
    } else {
      order.Charge();
      std::vector<std::string> preempted;
      // Counted before the job has a reservation.
      const int room = plan.CountRoom(*job);
      const int suitable = plan.CountSuitable(*job);
      if (job->priority > plan.lowest_preemptible() && plan.Preempt(*job, &preempted)) {
        waiting = Because(v1::Waiting::REASON_PREEMPTING,
                          "Jobs of lower priority write their checkpoints to make room for it.");
        SetStart(snapshot.now, snapshot.now, absl::InfiniteFuture(), &waiting);
        explanation.is_to_act = !preempted.empty() && !decision.preemptions.empty();
        forecast.Reserve(*job);
      } else {
        waiting = first.empty() ? Because(v1::Waiting::REASON_DEVICES_BUSY,
                                          absl::StrCat("Needs ", Needs(*job, plan.KindFor(*job)), "; ", room,
                                                       " of ", suitable, " free."))
                                : Because(v1::Waiting::REASON_BEHIND_OTHERS,
                                          absl::StrCat("Number ", position, " in the queue; \"",
                                                       JobName(first), "\" goes first."));
        const absl::Time expected = forecast.Reserve(*job);
        SetStart(snapshot.now, expected, plan.Reserve(*job), &waiting);
        if (first.empty()) first = job->id;
      }
    }
    waiting.set_position(position);
  }
  return explanations;
}

}  // namespace tandem
