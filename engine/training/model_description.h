#ifndef TANDEM_ENGINE_TRAINING_MODEL_DESCRIPTION_H_
#define TANDEM_ENGINE_TRAINING_MODEL_DESCRIPTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tandem/v1/model.pb.h"
#include "tandem/v1/model_description.pb.h"

namespace tandem {

// The most samples of a batch that a model is described for.
inline constexpr int64_t kMaxDescribedBatch = 65536;

// A network in figures: what its layers are, and what it takes for batches of `batch_size` samples, at
// least 1. The model has no template; its defaults are filled in or not. INVALID_ARGUMENT with the fields at
// fault, relative to the Model.
absl::StatusOr<v1::ModelDescription> DescribeModel(const v1::Model& model, int64_t batch_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MODEL_DESCRIPTION_H_
