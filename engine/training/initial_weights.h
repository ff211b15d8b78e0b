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

// What of JobSpec.initial_weights needs no file: that it has a source, and that its layers are there. The
// model is right, with its defaults.
void CheckInitialWeights(const v1::JobSpec& spec, FieldViolations& violations);

// The names of the parameters and statistics that spec.initial_weights wants. The model is right, with its
// defaults.
absl::StatusOr<std::set<std::string>> WantedTensors(const v1::JobSpec& spec);

// That the safetensors file at `path` holds all that spec.initial_weights wants of it. INVALID_ARGUMENT with
// the fields at fault relative to the JobSpec: a file that cannot be read or is not sound (its field is the
// source's); names that it does not have; shapes that differ, which are both named.
absl::Status CheckWeightsFile(const v1::JobSpec& spec, const std::string& path);

// The parameters and statistics that spec.initial_weights wants, float32, by name. Errors are those of
// CheckWeightsFile.
absl::StatusOr<std::map<std::string, Tensor>> ReadInitialWeights(const v1::JobSpec& spec,
                                                                 const std::string& path);

// All parameters and statistics of a model, float32, from a file that a job made. DATA_LOSS, naming the path,
// where it is not sound or something is missing.
absl::StatusOr<std::map<std::string, Tensor>> ReadModelWeights(const v1::Model& model,
                                                               const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_INITIAL_WEIGHTS_H_
