#ifndef TANDEM_ENGINE_TRAINING_TRAINED_MODEL_H_
#define TANDEM_ENGINE_TRAINING_TRAINED_MODEL_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/variables.h"
#include "engine/tensor/tensor.h"
#include "engine/training/model_file.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// A trained network.
struct TrainedModel {
  v1::JobSpec spec;                       // The job that trained it, defaults filled in.
  std::map<std::string, Tensor> weights;  // Parameters and statistics, float32, by name.
  TrainedOn trained_on;
};

// Reads the model of the job `spec` from a file that the job made. DATA_LOSS, naming the path, where it is
// not sound, something is missing, or it is not of this job.
absl::StatusOr<TrainedModel> ReadTrainedModel(const v1::JobSpec& spec, const std::string& path);

// The names by which a job's data are matched to the model at `path`, of which spec.initial_weights loads
// some layers: columns if the first layer is loaded, classes if the last one is. Other classes are taken,
// with a notice. `spec` has its defaults. INVALID_ARGUMENT where the file cannot be read.
absl::StatusOr<DataNames> NamesOfInitialWeights(const v1::JobSpec& spec, const std::string& path);

// Gives the variables of a graph of the model their values.
absl::Status WriteWeights(const TrainedModel& model, Variables& variables);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINED_MODEL_H_
