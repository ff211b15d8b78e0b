#ifndef TANDEM_ENGINE_BACKEND_TRAINING_CASE_H_
#define TANDEM_ENGINE_BACKEND_TRAINING_CASE_H_

#include <cstdint>

#include "engine/backend/op_cases.h"

namespace tandem {

// One training step of a small convolutional network on `batch` images of 12x12 bytes: normalisation, two
// convolutions with pooling, two dense layers, loss, gradients, an all_reduce scaled by `share`, Nesterov
// momentum and a meter. Inputs: image, label, learning_rate, step, in this order. Outputs: loss, logits. With
// several `buckets`, at most 8, the gradients are reduced in as many parts, each as soon as it is there, and
// parameters are updated in the order of the reductions.
CaseGraph TrainingCase(DType dtype, int64_t batch, double share = 1, int buckets = 1);

// The same network's loss and number of correct answers, without training it.
CaseGraph EvaluationCase(DType dtype, int64_t batch);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_TRAINING_CASE_H_
