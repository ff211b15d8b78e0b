#include "server/sweeps/results.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "google/protobuf/util/time_util.h"
#include "server/store/downloadable.h"

namespace tandem {
namespace {

using google::protobuf::util::TimeUtil;

v1::SweepResult ResultOf(const StoredJob& row) {
  const v1::Job& job = row.job;
  v1::SweepResult result;
  result.set_job(job.name());
  result.set_index(job.sweep_index());
  *result.mutable_values() = job.sweep_values();
  result.set_state(job.state());
  result.set_reason(job.reason());
  result.set_message(job.message());
  result.set_epochs(job.last_epoch().epoch());
  result.set_epochs_planned(std::max(job.progress().epochs(), job.last_epoch().epochs()));
  if (job.has_best()) {
    *result.mutable_best() = job.best();
    const std::optional<Measured> last = LastMeasured(job);
    if (last.has_value()) result.set_last_value(last->value);
    if (const std::optional<Downloadable> weights = DownloadableOf(row); weights.has_value()) {
      result.set_value(weights->measured.value);
      result.set_value_step(weights->measured.step);
      result.set_artifact(weights->artifact);
      result.set_weights_step(weights->step);
    }
  }
  return result;
}

v1::SweepState StateOf(const ListedSweep& listed) {
  const bool cancelled = listed.sweep.state() == v1::SWEEP_STATE_CANCELLING;
  for (const auto& [state, jobs] : listed.counts) {
    if (!IsTerminal(state)) return cancelled ? v1::SWEEP_STATE_CANCELLING : v1::SWEEP_STATE_ACTIVE;
  }
  if (cancelled) return v1::SWEEP_STATE_CANCELLED;
  return listed.counts.contains(v1::JOB_STATE_SUCCEEDED) ? v1::SWEEP_STATE_SUCCEEDED : v1::SWEEP_STATE_FAILED;
}

// Returns the first job with the best value; null if none counts.
const StoredJob* BestOf(const StoredSweep& stored) {
  const v1::SweepObjective& objective = stored.sweep.objective();
  const bool upwards = objective.mode() == v1::PLATEAU_MODE_MAX;
  const StoredJob* best = nullptr;
  double best_value = 0;
  for (const StoredJob& row : stored.jobs) {
    const v1::Job& job = row.job;
    if (!job.has_best() || job.best().metric() != objective.metric()) continue;
    const std::optional<Downloadable> weights = DownloadableOf(row);
    if (job.state() == v1::JOB_STATE_FAILED || !weights.has_value()) continue;
    const double value = weights->measured.value;
    if (std::isnan(value)) continue;
    if (best == nullptr || (upwards ? value > best_value : value < best_value)) {
      best = &row;
      best_value = value;
    }
  }
  return best;
}

// Sets the fields that the jobs determine.
void SetSummary(const ListedSweep& listed, v1::Sweep* sweep) {
  sweep->set_state(StateOf(listed));
  for (const auto& [state, jobs] : listed.counts) {
    v1::SweepCount* count = sweep->add_counts();
    count->set_state(state);
    count->set_jobs(jobs);
  }
  if (listed.has_ended) *sweep->mutable_end_time() = TimeUtil::MicrosecondsToTimestamp(listed.end_time_us);
  if (listed.best.has_value()) *sweep->mutable_best() = ResultOf(*listed.best);
}

}  // namespace

v1::Sweep DescribeSweep(const StoredSweep& stored) {
  ListedSweep listed;
  listed.sweep.set_state(stored.sweep.state());
  listed.has_ended = !stored.jobs.empty();
  v1::Sweep sweep = stored.sweep;
  for (const StoredJob& row : stored.jobs) {
    ++listed.counts[row.job.state()];
    listed.has_ended = listed.has_ended && row.job.has_end_time();
    listed.end_time_us = std::max(listed.end_time_us, TimeUtil::TimestampToMicroseconds(row.job.end_time()));
    *sweep.add_results() = ResultOf(row);
  }
  if (const StoredJob* best = BestOf(stored); best != nullptr) listed.best = *best;
  SetSummary(listed, &sweep);
  return sweep;
}

v1::Sweep DescribeSweep(const ListedSweep& listed) {
  v1::Sweep sweep = listed.sweep;
  sweep.clear_base();
  sweep.clear_grid();
  sweep.clear_random();
  SetSummary(listed, &sweep);
  return sweep;
}

}  // namespace tandem
