#ifndef TANDEM_ENGINE_TRAINING_TRAINING_STATE_H_
#define TANDEM_ENGINE_TRAINING_TRAINING_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/data_names.h"
#include "engine/schedules/plateau.h"
#include "engine/training/early_stopping.h"
#include "engine/training/measurement.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// By what results were judged: "the largest accuracy", "the least loss of mse { }". Empty where nothing was.
struct Aims {
  std::string best = {};
  std::string early_stopping = {};
  std::string plateau = {};
};

// Where a training stands between two steps, but for what its replicas keep in variables. Random numbers and
// the order of the samples follow from the seed and the step alone, so the step stands for them.
struct TrainingState {
  int64_t step = 0;  // Steps taken.
  // What epochs were counted by, as in TrainingLength. 0 steps before a training begins.
  int64_t steps_per_epoch = 0;
  int64_t epoch_shift = 0;
  // How it has ended, where it has: no step follows. A pause is no end.
  TrainingOutcome end;
  // The statistics of batch normalisation are already those of all training samples.
  bool population_statistics = false;
  // What was measured when training ended, where the finished network, which the summary has, was validated
  // once more.
  std::optional<v1::Evaluation> ended_by;

  // The epoch in progress: what each replica measured in it, and how long it has taken.
  std::vector<Measurement> epoch_shares;
  double epoch_seconds = 0;

  std::vector<double> loads;  // By which replicas get their shares, one each.
  int64_t samples = 0;        // That were trained, over all epochs.
  v1::TrainingSummary summary;
  EarlyStopping::State early_stopping;
  // The newest measurement that the plateau has not seen.
  std::optional<double> plateau_measure;
  std::optional<Plateau::State> plateau;  // None where the schedule watches nothing.
  Aims aims = {};

  // The names by which the model knows its data, to which data are matched when training goes on.
  DataNames names = {};
  // What the data held: a DataDigest.
  std::map<std::string, std::string> data;
};

// TrainingLength::epoch_shift of a training that goes on from `state` with so many steps an epoch: epochs
// that were whole count as such, and of one in progress the same part, rounded down to a step.
int64_t EpochShift(const TrainingState& state, int64_t steps_per_epoch);

// Forgets what was validated and what follows from measurements: the best result, early stopping's count, the
// plateau's best. For a training that goes on with other measurements; the plateau's rate stays.
void ForgetResults(TrainingState* state);

// As JSON, in which every number comes back as it was.
std::string ToJson(const TrainingState& state);
// DATA_LOSS, saying what is wrong, where it is no such JSON.
absl::StatusOr<TrainingState> TrainingStateFromJson(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINING_STATE_H_
