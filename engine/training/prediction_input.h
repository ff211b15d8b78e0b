#ifndef TANDEM_ENGINE_TRAINING_PREDICTION_INPUT_H_
#define TANDEM_ENGINE_TRAINING_PREDICTION_INPUT_H_

#include "absl/status/statusor.h"
#include "engine/tensor/tensor.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/prediction.pb.h"

namespace tandem {

// The samples of an input, [samples, ...] of the type and the shape of those that the model was trained on:
// images decoded, converted and scaled as the job's own were; arrays; rows of a table. Nothing in the input
// is trusted. INVALID_ARGUMENT, saying what is wrong, where it cannot be read or does not fit.
absl::StatusOr<Tensor> ReadPredictInput(const v1::PredictInput& input, const TrainedModel& model);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PREDICTION_INPUT_H_
