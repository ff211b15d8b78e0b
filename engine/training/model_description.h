#ifndef TANDEM_ENGINE_TRAINING_MODEL_DESCRIPTION_H_
#define TANDEM_ENGINE_TRAINING_MODEL_DESCRIPTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "tandem/v1/model.pb.h"
#include "tandem/v1/model_description.pb.h"

namespace tandem {

// The largest batch that a model is described for.
inline constexpr int64_t kMaxDescribedBatch = 65536;

// Describes a network's layers, and its cost for batches of `batch_size` samples, at least 1. The model has
// no template. Its defaults may be filled in. INVALID_ARGUMENT with the wrong fields, relative to the Model.
absl::StatusOr<v1::ModelDescription> DescribeModel(const v1::Model& model, int64_t batch_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MODEL_DESCRIPTION_H_
