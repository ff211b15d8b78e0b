#include "engine/training/resumption.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/optimizers/optimizer.h"
#include "engine/training/gradient_reduction.h"
#include "engine/training/model_file.h"
#include "engine/training/snapshot.h"

namespace tandem {
namespace {

// Merges the states of several replicas into the state of a single replica. `why` compares the checkpoint
// with this job.
void Join(absl::string_view why, Resumption* resumption) {
  resumption->notices.push_back(
      absl::StrCat("The checkpoint of step ", resumption->state.step, why,
                   ": all replicas begin with the mean of what the checkpoint's replicas had of their own."));
  // The sum of the errors is what the replicas still owe. Other replicas would owe another sum.
  for (auto tensor = resumption->tensors.begin(); tensor != resumption->tensors.end();) {
    tensor = absl::StrContains(tensor->first, kCompressionErrorPrefix) ? resumption->tensors.erase(tensor)
                                                                       : std::next(tensor);
  }
  resumption->tensors = AverageCheckpoint(std::move(resumption->tensors), resumption->shares);
}

// Returns the learning rate before any schedule.
double RateAtFirst(const v1::Training& training, size_t replicas) {
  return LearningRateOf(training.optimizer()) *
         (training.schedule().linear_scaling() ? static_cast<double>(replicas) : 1);
}

// Fits the checkpoint to a job that differs from the job that wrote the checkpoint.
absl::Status Fit(const v1::JobSpec& spec, int replicas, Resumption* resumption) {
  TrainingState& state = resumption->state;
  TANDEM_ASSIGN_OR_RETURN(const v1::JobSpec writer, JobIn(state.model));
  const size_t before = state.epoch_shares.size();
  resumption->shares = SharesOf(writer.replicas(), state);
  if (state.plateau.has_value()) {
    // A plateau keeps the rate itself, and not how far the rate has dropped.
    state.plateau->rate *= RateAtFirst(spec.training(), replicas) / RateAtFirst(writer.training(), before);
  }
  if (static_cast<int>(before) != replicas) {
    Join(absl::StrCat(" is of ", before, before == 1 ? " replica" : " replicas", ", and this job has ",
                      replicas),
         resumption);
    // The epoch's sums stay whole.
    const int64_t skipped = SkippedStepsOf(state.epoch_shares);
    state.epoch_shares = {TotalOf(state.epoch_shares)};
    state.epoch_shares[0].skipped_steps = skipped;
    state.epoch_shares.resize(replicas);
    state.loads.clear();
  } else if (before > 1 && writer.replicas().has_parameter_averaging() &&
             !spec.replicas().has_parameter_averaging()) {
    Join(" is of replicas that stepped alone, and this job's replicas step together", resumption);
  }
  return absl::OkStatus();
}

// The number of damaged checkpoints that remain.
constexpr int kDamagedKept = 2;

absl::StatusOr<Resumption> ReadResumption(Env* env, const std::string& path) {
  TANDEM_ASSIGN_OR_RETURN(CheckpointContents contents, ReadCheckpoint(env, path));
  absl::StatusOr<TrainingState> state = TrainingStateFromJson(contents.state);
  if (!state.ok() || state->epoch_shares.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint ", path,
                     " cannot be used: ", state.ok() ? "it is of no replicas" : state.status().message()));
  }
  Resumption resumption;
  resumption.checkpoint.set_step(state->step);
  resumption.checkpoint.set_epoch(state->summary.epochs());
  resumption.checkpoint.set_size_bytes(contents.size_bytes);
  resumption.checkpoint.set_file(CheckpointFileName(state->step));
  resumption.checkpoint.set_best(state->summary.has_best() && state->summary.best().step() == state->step);
  resumption.state = *std::move(state);
  resumption.tensors = std::move(contents.tensors);
  return resumption;
}

}  // namespace

absl::StatusOr<absl::optional<Resumption>> OpenCheckpoint(Env* env, const std::string& folder,
                                                          const v1::JobSpec& spec, int replicas,
                                                          bool sets_aside) {
  if (folder.empty()) return absl::optional<Resumption>();
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> files, ListCheckpointFiles(env, folder));
  std::vector<std::string> damaged;
  absl::Status first;  // The error of the newest checkpoint.
  for (const std::string& file : files) {
    const std::string path = absl::StrCat(folder, "/", file);
    absl::StatusOr<Resumption> resumption = ReadResumption(env, path);
    // Another worker of the job has set it aside.
    if (absl::IsNotFound(resumption.status())) continue;
    if (absl::IsDataLoss(resumption.status())) {
      damaged.push_back(path);
      first.Update(resumption.status());
      continue;
    }
    if (!resumption.ok()) return absl::FailedPreconditionError(resumption.status().message());
    if (!damaged.empty()) {
      resumption->notices.push_back(absl::StrCat(first.message(),
                                                 "; training continues from the checkpoint of step ",
                                                 resumption->state.step, ", the one before it."));
    }
    for (const std::string& other : damaged) {
      if (!sets_aside) break;
      const absl::Status renamed = env->RenameFile(other, absl::StrCat(other, kDamagedCheckpoint));
      if (!renamed.ok() && !absl::IsNotFound(renamed))
        return absl::FailedPreconditionError(renamed.message());
    }
    if (sets_aside && !damaged.empty()) RemoveOldDamagedCheckpoints(env, folder, kDamagedKept);
    if (const absl::Status status = Fit(spec, replicas, &*resumption); !status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoint ", path, " cannot be used: ", status.message()));
    }
    return absl::make_optional(*std::move(resumption));
  }
  if (!first.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(first.message(), "; none of the checkpoints in ", folder, " (", damaged.size(),
                     ") is undamaged, so this job cannot continue; submit it again, or remove them to train "
                     "from the beginning"));
  }
  return absl::optional<Resumption>();
}

bool StillEnds(const TrainingState& state, const v1::Training& training, const TrainingLength& length) {
  const v1::EarlyStopping& stopping = training.early_stopping();
  switch (state.end.reason) {
    case v1::STATE_REASON_UNSPECIFIED:
      return false;
    case v1::STATE_REASON_COMPLETED:
      return state.step >= length.steps;
    case v1::STATE_REASON_NO_IMPROVEMENT:
      return stopping.has_patience() && state.early_stopping.without_improvement >= stopping.patience();
    case v1::STATE_REASON_TIME_LIMIT:
      return stopping.has_max_seconds() &&
             state.summary.training_seconds() + state.summary.validation_seconds() >= stopping.max_seconds();
    case v1::STATE_REASON_TARGET_REACHED: {
      const v1::Evaluation& newest =
          state.ended_by.has_value()
              ? *state.ended_by
              : (state.summary.has_validation() ? state.summary.validation() : state.summary.training());
      return EarlyStopping(stopping).Observe(newest, state.step).reason == state.end.reason;
    }
    default:
      return true;
  }
}

}  // namespace tandem
