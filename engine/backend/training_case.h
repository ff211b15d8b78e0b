#ifndef TANDEM_ENGINE_BACKEND_TRAINING_CASE_H_
#define TANDEM_ENGINE_BACKEND_TRAINING_CASE_H_

#include <cstdint>

#include "engine/backend/op_cases.h"

namespace tandem {

// Returns a training step of a small convolutional network on `batch` images of 12x12 bytes: normalisation,
// two convolutions with pooling, two dense layers, loss, gradients, an all_reduce with scale `share`,
// Nesterov momentum and a meter. Inputs in this order: image, label, learning_rate, step. Outputs: loss,
// logits. With several `buckets`, at most 8, each part of the gradients is reduced as soon as it exists.
// Parameters are updated in the order of the reductions.
CaseGraph TrainingCase(DType dtype, int64_t batch, double share = 1, int buckets = 1);

// Returns the same network's loss and number of correct answers, without training.
CaseGraph EvaluationCase(DType dtype, int64_t batch);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_TRAINING_CASE_H_
