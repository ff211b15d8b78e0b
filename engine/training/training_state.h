#ifndef TANDEM_ENGINE_TRAINING_TRAINING_STATE_H_
#define TANDEM_ENGINE_TRAINING_TRAINING_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/schedules/learning_rate.h"
#include "engine/schedules/plateau.h"
#include "engine/training/early_stopping.h"
#include "engine/training/measurement.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The measures by which results were judged: "the largest accuracy", "the least loss of mse { }". Empty if
// unused.
struct Aims {
  std::string best = {};
  std::string early_stopping = {};
  std::string plateau = {};
};

// The state of a training between two steps, without the replicas' variables. Random numbers and the order of
// the samples depend on the seed and the step alone, so the step represents them.
struct TrainingState {
  int64_t step = 0;  // Steps taken.
  // The counting of epochs, as in TrainingLength. 0 before a training begins.
  int64_t steps_per_epoch = 0;
  int64_t epoch_shift = 0;
  std::vector<EarlierEpochs> earlier_epochs = {};
  // Why training has ended, if it has. A pause is no end.
  TrainingOutcome end;
  // Whether batch normalisation already has the statistics of an epoch's samples.
  bool population_statistics = false;
  // The validation that ended training. Set if the finished network was validated once more: `summary` then
  // has the later validation.
  std::optional<v1::Evaluation> ended_by;

  // The current epoch: the measurements of each replica, and the time so far.
  std::vector<Measurement> epoch_shares;
  double epoch_seconds = 0;

  std::vector<double> loads;  // The loads of the replicas.
  int64_t samples = 0;        // Trained samples, over all epochs.
  v1::TrainingSummary summary;
  EarlyStopping::State early_stopping;
  // The newest measurement that the plateau has not seen.
  std::optional<double> plateau_measure;
  std::optional<Plateau::State> plateau;  // Nothing if the schedule watches no measure.
  Aims aims = {};

  // The metadata of a model file with this state's weights. Data are matched to the names in them when
  // training continues.
  std::map<std::string, std::string> model = {};
  // A DataDigest of the data.
  std::map<std::string, std::string> data;
};

// Returns the TrainingLength::epoch_shift of a training that continues from `state` with another number of
// steps in an epoch. Whole epochs stay whole. The current epoch keeps its fraction, rounded down to a step.
int64_t EpochShift(const TrainingState& state, int64_t steps_per_epoch);

// Returns each replica's weight in a mean of all replicas: equal, or by load if `spec` says so. The weights
// add up to 1. `state` has at least one replica.
std::vector<double> SharesOf(const v1::Replicas& spec, const TrainingState& state);

// Forgets validations and their conclusions: the best result, early stopping's count, the plateau's best. The
// plateau's rate stays. For a training that continues with other measurements.
void ForgetResults(TrainingState* state);

// Returns the state as JSON that preserves every number exactly.
std::string ToJson(const TrainingState& state);
// Reads the JSON of ToJson. DATA_LOSS with the fault if it is wrong.
absl::StatusOr<TrainingState> TrainingStateFromJson(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINING_STATE_H_
