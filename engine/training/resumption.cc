#include "engine/training/resumption.h"

#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/training/snapshot.h"

namespace tandem {
namespace {

// Makes one replica's state of those of several.
void Join(const v1::Replicas& spec, int replicas, Resumption* resumption) {
  TrainingState& state = resumption->state;
  std::vector<double> shares(state.epoch_shares.size(), 1.0);
  if (spec.parameter_averaging().weighted_by_load() && state.loads.size() == shares.size()) {
    shares = state.loads;
  }
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  resumption->notice =
      absl::StrCat("The checkpoint of step ", state.step, " is of ", shares.size(),
                   shares.size() == 1 ? " replica" : " replicas", ", and this job has ", replicas,
                   ": all of them begin with the mean of what those had of their own.");
  resumption->tensors = AverageCheckpoint(std::move(resumption->tensors), shares);
  // The epoch's sums stay whole.
  state.epoch_shares = {TotalOf(state.epoch_shares)};
  state.epoch_shares.resize(replicas);
  state.loads.clear();
}

}  // namespace

absl::StatusOr<absl::optional<Resumption>> OpenCheckpoint(Env* env, const std::string& path,
                                                          const v1::Replicas& spec, int replicas) {
  if (path.empty()) return absl::optional<Resumption>();
  absl::StatusOr<CheckpointContents> contents = ReadCheckpoint(env, path);
  if (absl::IsNotFound(contents.status())) return absl::optional<Resumption>();
  if (!contents.ok()) return absl::FailedPreconditionError(contents.status().message());
  absl::StatusOr<TrainingState> state = TrainingStateFromJson(contents->state);
  if (!state.ok() || state->epoch_shares.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint ", path,
                     " cannot be used: ", state.ok() ? "it is of no replicas" : state.status().message()));
  }
  Resumption resumption;
  resumption.state = *std::move(state);
  resumption.tensors = std::move(contents->tensors);
  if (static_cast<int>(resumption.state.epoch_shares.size()) != replicas) Join(spec, replicas, &resumption);
  return absl::make_optional(std::move(resumption));
}

}  // namespace tandem
