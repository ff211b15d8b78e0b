#include "client/cli/job_ending.h"

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"
#include "client/lib/main_metric.h"
#include "proto/job_file/enum_names.h"

namespace tandem::cli {

std::string ColoredState(v1::JobState state, const Style& style) {
  const std::string name = ShortEnumName(state);
  switch (state) {
    case v1::JOB_STATE_SUCCEEDED:
      return style.Green(name);
    case v1::JOB_STATE_FAILED:
      return style.Red(name);
    case v1::JOB_STATE_RUNNING:
      return style.Cyan(name);
    case v1::JOB_STATE_CANCELLED:
    case v1::JOB_STATE_CANCELLING:
      return style.Yellow(name);
    default:
      return name;
  }
}

std::string SummaryText(const v1::TrainingSummary& summary) {
  std::string text =
      absl::StrCat(FormatCount(summary.epochs()), summary.epochs() == 1 ? " epoch, " : " epochs, ",
                   FormatCount(summary.steps()), summary.steps() == 1 ? " step" : " steps", " in ",
                   FormatElapsed(absl::Seconds(summary.training_seconds())), " (",
                   FormatRate(summary.images_per_second()), " samples/s)");
  if (summary.validation_seconds() > 0) {
    absl::StrAppend(&text, ", validation ", FormatElapsed(absl::Seconds(summary.validation_seconds())));
  }
  return text;
}

std::string BestText(const v1::BestResult& best) {
  return absl::StrCat(best.validation() ? "validation " : "training ", best.metric(), " ",
                      FormatMeasure(best.value()), ", in epoch ", FormatCount(best.epoch()), " (step ",
                      FormatCount(best.step()), ")");
}

std::string WhereBestWeightsAre(const v1::TrainingSummary& summary, bool kept) {
  if (kept) return "; its weights are in best.safetensors";
  if (summary.best().step() == summary.steps()) return "";
  return "; its weights were not kept, so a download returns the last weights (best_model keeps the best)";
}

namespace {

// Returns the job's last measures: ": validation loss 0.2500, accuracy 0.9000", or "" if unknown. The
// finished network may have another validation after its last epoch.
std::string LastMeasures(const JobProgress& job, const Style& style) {
  const v1::TrainingSummary& summary = job.last_change().summary();
  const v1::EpochSummary epoch = job.last_epoch().value_or(v1::EpochSummary());
  const bool validated = summary.has_validation() || epoch.has_validation();
  if (!validated && !epoch.has_training()) return "";
  const v1::Evaluation& evaluation = summary.has_validation()
                                         ? summary.validation()
                                         : (epoch.has_validation() ? epoch.validation() : epoch.training());
  std::string text =
      absl::StrCat(": ", validated ? "validation" : "training", " loss ", FormatMeasure(evaluation.loss()));
  const std::string main = client::MainMetric(evaluation);
  for (const auto& [metric, value] : OrderedMetrics(evaluation)) {
    const std::string number = FormatMeasure(value);
    absl::StrAppend(&text, ", ", metric, " ", metric == main ? style.Bold(number) : number);
  }
  return text;
}

// Returns the job's files and the command to fetch them.
std::string MadeText(const JobProgress& job, const std::string& id) {
  std::string text;
  for (const v1::Artifact& artifact : job.artifacts()) {
    absl::StrAppend(&text, "made ", artifact.name(), " (", FormatBytes(artifact.size_bytes()), ")",
                    artifact.description().empty() ? "" : ": " + artifact.description(), "\n");
  }
  if (!job.artifacts().empty()) absl::StrAppend(&text, "fetch with: tandem download ", id, "\n");
  return text;
}

}  // namespace

std::string JobEnding(const JobProgress& job, const std::string& id, const Style& style) {
  std::string text = absl::StrCat(ColoredState(job.state(), style), " after ", FormatElapsed(job.Elapsed()));
  if (job.state() == v1::JOB_STATE_SUCCEEDED) {
    absl::StrAppend(&text, LastMeasures(job, style), "\n");
    if (job.last_change().has_summary()) {
      const v1::TrainingSummary& summary = job.last_change().summary();
      if (job.last_change().reason() != v1::STATE_REASON_COMPLETED) {
        absl::StrAppend(&text, "stopped early: ", Indented(job.last_change().message()), "\n");
      }
      absl::StrAppend(&text, "trained ", SummaryText(summary), "\n");
      if (summary.has_best()) {
        absl::StrAppend(&text, "best ", BestText(summary.best()),
                        WhereBestWeightsAre(summary, HasBestModel(job.artifacts())), "\n");
      }
    }
    return text + MadeText(job, id);
  }
  const v1::StateChange& change = job.last_change();
  if (!change.message().empty()) absl::StrAppend(&text, ": ", Indented(change.message()));
  text += "\n";
  if (change.has_summary()) absl::StrAppend(&text, "trained ", SummaryText(change.summary()), "\n");
  if (job.state() == v1::JOB_STATE_CANCELLED) {
    text += MadeText(job, id);
    if (job.has_checkpoint()) {
      absl::StrAppend(&text, "continue from its last checkpoint with: tandem fork ", id, "\n");
    }
  }
  if (job.state() == v1::JOB_STATE_FAILED) {
    absl::StrAppend(&text, "its log: tandem logs ", id, "\n");
    // No checkpoint is usable, so resuming would only fail again.
    if (change.reason() == v1::STATE_REASON_CHECKPOINT_ERROR) {
      text += "resuming fails too, because its checkpoints are damaged: submit the job again\n";
    } else if (job.has_checkpoint()) {
      absl::StrAppend(&text, "continue from its last checkpoint with: tandem resume ", id, "\n");
    }
  }
  return text;
}

}  // namespace tandem::cli
