#ifndef TANDEM_ENGINE_TRAINING_INITIAL_WEIGHTS_H_
#define TANDEM_ENGINE_TRAINING_INITIAL_WEIGHTS_H_

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/field_violations.h"
#include "engine/tensor/tensor.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Checks the parts of JobSpec.initial_weights that need no file: its source and its layers. The model is
// right and has its defaults.
void CheckInitialWeights(const v1::JobSpec& spec, FieldViolations& violations);

// Returns the names of the parameters and statistics that spec.initial_weights selects. The model is right
// and has its defaults.
absl::StatusOr<std::set<std::string>> WantedTensors(const v1::JobSpec& spec);

// Checks that the safetensors file at `path` has all tensors that spec.initial_weights selects.
// INVALID_ARGUMENT with the wrong fields relative to the JobSpec. The source's field names an unreadable or
// damaged file. Messages list missing names, and both shapes if they differ.
absl::Status CheckWeightsFile(const v1::JobSpec& spec, const std::string& path);

// Returns the parameters and statistics that spec.initial_weights selects, float32, by name. Errors as
// CheckWeightsFile.
absl::StatusOr<std::map<std::string, Tensor>> ReadInitialWeights(const v1::JobSpec& spec,
                                                                 const std::string& path);

// Returns all parameters and statistics of a model, float32, from a job's file. DATA_LOSS with the path if
// the file is damaged or incomplete.
absl::StatusOr<std::map<std::string, Tensor>> ReadModelWeights(const v1::Model& model,
                                                               const std::string& path);

// Returns those of a file's tensors that ReadModelWeights returns. `path` is for errors, which are the same.
absl::StatusOr<std::map<std::string, Tensor>> TakeModelWeights(const v1::Model& model,
                                                               std::map<std::string, Tensor> tensors,
                                                               const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_INITIAL_WEIGHTS_H_
