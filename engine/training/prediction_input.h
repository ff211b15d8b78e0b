#ifndef TANDEM_ENGINE_TRAINING_PREDICTION_INPUT_H_
#define TANDEM_ENGINE_TRAINING_PREDICTION_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tensor/tensor.h"
#include "engine/training/trained_model.h"
#include "tandem/v1/prediction.pb.h"

namespace tandem {

// Reads the samples of an input, [samples, ...] with the type and shape of the model's training samples.
// Images are decoded, converted and scaled like the job's. Arrays and rows of a table are accepted too.
// Trusts nothing in the input. Adds notices about cells that the model does not know. INVALID_ARGUMENT with
// the fault if the input cannot be read or does not fit.
absl::StatusOr<Tensor> ReadPredictInput(const v1::PredictInput& input, const TrainedModel& model,
                                        std::vector<std::string>* notices);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PREDICTION_INPUT_H_
