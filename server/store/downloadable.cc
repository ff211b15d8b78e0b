#include "server/store/downloadable.h"

#include <algorithm>
#include <string>

namespace tandem {
namespace {

constexpr char kBestModel[] = "best.safetensors";
constexpr char kLastModel[] = "model.safetensors";

// Returns a metric's measurement in an evaluation after `step`; nullopt if missing.
std::optional<Measured> MeasuredIn(const v1::Evaluation& evaluation, const std::string& metric,
                                   int64_t step) {
  if (metric == "loss") return Measured{evaluation.loss(), step};
  const auto found = evaluation.metrics().find(metric);
  if (found == evaluation.metrics().end()) return std::nullopt;
  return Measured{found->second, step};
}

bool HasArtifact(const v1::Job& job, const char* name) {
  return std::any_of(job.artifacts().begin(), job.artifacts().end(),
                     [&](const v1::Artifact& artifact) { return artifact.name() == name; });
}

}  // namespace

std::optional<Measured> LastMeasured(const v1::Job& job) {
  const v1::BestResult& best = job.best();
  const v1::TrainingSummary& summary = job.summary();
  const v1::EpochSummary& epoch = job.last_epoch();
  if (best.validation()) {
    if (summary.has_validation()) {
      return MeasuredIn(summary.validation(), best.metric(), summary.validation_step());
    }
    if (epoch.has_validation()) return MeasuredIn(epoch.validation(), best.metric(), epoch.step());
    return std::nullopt;
  }
  // The summary's training is the last epoch's.
  if (summary.has_training()) return MeasuredIn(summary.training(), best.metric(), epoch.step());
  if (epoch.has_training()) return MeasuredIn(epoch.training(), best.metric(), epoch.step());
  return std::nullopt;
}

std::optional<Downloadable> DownloadableOf(const StoredJob& row) {
  const v1::Job& job = row.job;
  if (!job.has_best()) return std::nullopt;
  const bool ended = IsTerminal(job.state());
  const Measured best = {job.best().value(), job.best().step()};
  // Before the job ends, its record may not name the file yet.
  if ((row.keeps_best && !ended) || HasArtifact(job, kBestModel)) {
    return Downloadable{kBestModel, best, best.step};
  }
  if (ended && !HasArtifact(job, kLastModel)) return std::nullopt;
  return Downloadable{kLastModel, LastMeasured(job).value_or(best), job.summary().steps()};
}

bool KeepsBest(const v1::JobSpec& spec) {
  const v1::BestModel& kept = spec.training().best_model();
  // keep_weights' default: a given best_model keeps its weights.
  return spec.training().has_best_model() && (!kept.has_keep_weights() || kept.keep_weights());
}

}  // namespace tandem
