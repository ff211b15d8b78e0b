#ifndef TANDEM_ENGINE_TRAINING_TRAINED_MODEL_H_
#define TANDEM_ENGINE_TRAINING_TRAINED_MODEL_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/variables.h"
#include "engine/tensor/tensor.h"
#include "engine/training/model_file.h"
#include "tandem/v1/job.pb.h"
#include "tandem/v1/table.pb.h"

namespace tandem {

// A trained network.
struct TrainedModel {
  v1::JobSpec spec;                       // The job that trained it, with its defaults. See JobIn.
  std::map<std::string, Tensor> weights;  // Parameters and statistics, float32, by name.
  TrainedOn trained_on;
};

// Reads the model of the job `spec` from the job's model file or checkpoint. Compares a checkpoint's
// checksum. DATA_LOSS with the path if the file is damaged, incomplete or of another job. NOT_FOUND if no
// such file exists.
absl::StatusOr<TrainedModel> ReadTrainedModel(const v1::JobSpec& spec, const std::string& path);

// Returns the names by which a job's data are matched to the model at `path`, from which spec.initial_weights
// loads layers. Columns are matched if the first layer is loaded, classes if the last layer is loaded. Other
// classes are accepted with a notice. `spec` has its defaults. INVALID_ARGUMENT if the file cannot be read.
absl::StatusOr<DataNames> NamesOfInitialWeights(const v1::JobSpec& spec, const std::string& path);

// Returns the preparation of the table that the model at `path` was trained on. Nothing if the model has
// none. INVALID_ARGUMENT if the file cannot be read.
absl::StatusOr<std::optional<v1::TablePreparation>> PreparationInWeights(const std::string& path);

// Writes the model's weights into the variables of its graph.
absl::Status WriteWeights(const TrainedModel& model, Variables& variables);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TRAINED_MODEL_H_
