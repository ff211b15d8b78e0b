#include "server/store/downloadable.h"

#include <algorithm>
#include <string>

namespace tandem {
namespace {

constexpr char kBestModel[] = "best.safetensors";
constexpr char kLastModel[] = "model.safetensors";

// Returns a metric's value in an evaluation; nullopt if missing.
std::optional<double> ValueIn(const v1::Evaluation& evaluation, const std::string& metric) {
  if (metric == "loss") return evaluation.loss();
  const auto found = evaluation.metrics().find(metric);
  if (found == evaluation.metrics().end()) return std::nullopt;
  return found->second;
}

bool HasArtifact(const v1::Job& job, const char* name) {
  return std::any_of(job.artifacts().begin(), job.artifacts().end(),
                     [&](const v1::Artifact& artifact) { return artifact.name() == name; });
}

}  // namespace

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

std::optional<Downloadable> DownloadableOf(const StoredJob& row) {
  const v1::Job& job = row.job;
  if (!job.has_best()) return std::nullopt;
  const bool ended = IsTerminal(job.state());
  // Before the job ends, its record may not name the file yet.
  if ((row.keeps_best && !ended) || HasArtifact(job, kBestModel)) {
    return Downloadable{kBestModel, job.best().value()};
  }
  if (ended && !HasArtifact(job, kLastModel)) return std::nullopt;
  return Downloadable{kLastModel, LastValue(job).value_or(job.best().value())};
}

bool KeepsBest(const v1::JobSpec& spec) {
  const v1::BestModel& kept = spec.training().best_model();
  // keep_weights' default: a given best_model keeps its weights.
  return spec.training().has_best_model() && (!kept.has_keep_weights() || kept.keep_weights());
}

}  // namespace tandem
