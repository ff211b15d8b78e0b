#include "server/sweeps/results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/util/time_util.h"
#include "proto/fields/field_place.h"
#include "proto/fields/field_value.h"

namespace tandem {
namespace {

// Of a measure in an evaluation, where it has it.
std::optional<double> ValueIn(const v1::Evaluation& evaluation, const std::string& metric) {
  if (metric == "loss") return evaluation.loss();
  const auto found = evaluation.metrics().find(metric);
  if (found == evaluation.metrics().end()) return std::nullopt;
  return found->second;
}

// The newest measurement of the measure that `job.best` is the best of.
std::optional<double> LastValue(const v1::Job& job) {
  const v1::BestResult& best = job.best();
  const v1::TrainingSummary& summary = job.summary();
  const v1::EpochSummary& epoch = job.last_epoch();
  if (best.validation()) {
    if (summary.has_validation()) return ValueIn(summary.validation(), best.metric());
    if (epoch.has_validation()) return ValueIn(epoch.validation(), best.metric());
    return std::nullopt;
  }
  if (summary.has_training()) return ValueIn(summary.training(), best.metric());
  if (epoch.has_training()) return ValueIn(epoch.training(), best.metric());
  return std::nullopt;
}

constexpr char kBestModel[] = "best.safetensors";
constexpr char kLastModel[] = "model.safetensors";

bool HasArtifact(const v1::Job& job, const char* name) {
  return std::any_of(job.artifacts().begin(), job.artifacts().end(),
                     [&](const v1::Artifact& artifact) { return artifact.name() == name; });
}

// The weights of a job that a download returns, or will, and the objective's value that they have.
struct Downloadable {
  const char* artifact = kLastModel;
  double value = 0;
};

// Whether a job keeps its best weights. A job's own spec is not read with its sweep: the sweep's base and the
// job's values tell.
bool KeepsBest(const v1::Job& job, const v1::JobSpec& base) {
  v1::JobSpec spec;
  if (base.training().has_best_model()) {
    *spec.mutable_training()->mutable_best_model() = base.training().best_model();
  }
  for (const v1::SweepValue& value : job.sweep_values()) {
    if (!absl::StartsWith(value.field(), "training.best_model")) continue;
    const auto no_hint = [](absl::string_view, const std::vector<std::string>&) { return std::string(); };
    const absl::StatusOr<FieldPlace> place = FindField(value.field(), no_hint, &spec);
    if (place.ok()) SetFieldValue(*place, value.value()).IgnoreError();
  }
  // A BestModel without `keep_weights` keeps them.
  const v1::BestModel& best_model = spec.training().best_model();
  return spec.training().has_best_model() && (!best_model.has_keep_weights() || best_model.keep_weights());
}

// None where nothing was measured, or the job has ended without a model.
std::optional<Downloadable> DownloadableOf(const v1::Job& job, const v1::JobSpec& base) {
  if (!job.has_best()) return std::nullopt;
  const bool ended = IsTerminal(job.state());
  const bool keeps_best = !ended && KeepsBest(job, base);
  if (keeps_best || HasArtifact(job, kBestModel)) return Downloadable{kBestModel, job.best().value()};
  if (ended && !HasArtifact(job, kLastModel)) return std::nullopt;
  return Downloadable{kLastModel, LastValue(job).value_or(job.best().value())};
}

v1::SweepResult ResultOf(const v1::Job& job, const v1::JobSpec& base) {
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
    if (const std::optional<double> last = LastValue(job); last.has_value()) result.set_last_value(*last);
    if (const std::optional<Downloadable> weights = DownloadableOf(job, base); weights.has_value()) {
      result.set_value(weights->value);
      result.set_artifact(weights->artifact);
    }
  }
  return result;
}

v1::SweepState StateOf(const StoredSweep& stored) {
  const bool cancelled = stored.sweep.state() == v1::SWEEP_STATE_CANCELLING;
  bool succeeded = false;
  for (const StoredJob& job : stored.jobs) {
    if (!IsTerminal(job.job.state())) return cancelled ? v1::SWEEP_STATE_CANCELLING : v1::SWEEP_STATE_ACTIVE;
    succeeded = succeeded || job.job.state() == v1::JOB_STATE_SUCCEEDED;
  }
  if (cancelled) return v1::SWEEP_STATE_CANCELLED;
  return succeeded ? v1::SWEEP_STATE_SUCCEEDED : v1::SWEEP_STATE_FAILED;
}

// The first of those whose weights have the best value; null where none counts.
const v1::Job* BestOf(const StoredSweep& stored) {
  const v1::SweepObjective& objective = stored.sweep.objective();
  const bool upwards = objective.mode() == v1::PLATEAU_MODE_MAX;
  const v1::Job* best = nullptr;
  double best_value = 0;
  for (const StoredJob& row : stored.jobs) {
    const v1::Job& job = row.job;
    if (!job.has_best() || job.best().metric() != objective.metric()) continue;
    const std::optional<Downloadable> weights = DownloadableOf(job, stored.sweep.base());
    if (job.state() == v1::JOB_STATE_FAILED || !weights.has_value() || std::isnan(weights->value)) continue;
    if (best == nullptr || (upwards ? weights->value > best_value : weights->value < best_value)) {
      best = &job;
      best_value = weights->value;
    }
  }
  return best;
}

}  // namespace

v1::Sweep DescribeSweep(const StoredSweep& stored, SweepResults results) {
  using google::protobuf::util::TimeUtil;
  v1::Sweep sweep = stored.sweep;
  sweep.set_state(StateOf(stored));
  std::map<v1::JobState, int> counts;
  bool ended = !stored.jobs.empty();
  int64_t end_us = 0;
  for (const StoredJob& row : stored.jobs) {
    ++counts[row.job.state()];
    ended = ended && row.job.has_end_time();
    end_us = std::max(end_us, TimeUtil::TimestampToMicroseconds(row.job.end_time()));
    if (results == SweepResults::kShown) *sweep.add_results() = ResultOf(row.job, stored.sweep.base());
  }
  for (const auto& [state, jobs] : counts) {
    v1::SweepCount* count = sweep.add_counts();
    count->set_state(state);
    count->set_jobs(jobs);
  }
  if (ended) *sweep.mutable_end_time() = TimeUtil::MicrosecondsToTimestamp(end_us);
  if (const v1::Job* best = BestOf(stored); best != nullptr)
    *sweep.mutable_best() = ResultOf(*best, stored.sweep.base());
  return sweep;
}

}  // namespace tandem
