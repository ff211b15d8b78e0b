#ifndef TANDEM_ENGINE_LOSSES_LOSS_H_
#define TANDEM_ENGINE_LOSSES_LOSS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/target.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Sets the fields that have a default and are left out.
void FillLossDefaults(v1::Loss* loss);

// What is wrong with the message for itself: INVALID_ARGUMENT with the fields at fault, relative to the Loss
// ("huber.delta"). Defaults are filled in, here and below.
absl::Status CheckLoss(const v1::Loss& loss);

// That the loss takes such targets. INVALID_ARGUMENT as CheckLoss's.
absl::Status CheckLossTarget(const v1::Loss& loss, const Target& target);

// Whether targets that are values must lie in [0, 1].
bool TakesProbabilities(const v1::Loss& loss);

// Why a network whose output for one sample has this shape does not go with a loss and targets that fit:
// "gives [10], but ..."; empty where it does.
std::string OutputFault(const v1::Loss& loss, const Target& target, const Shape& output);

// The number of a batch that `LossValues::loss` is.
enum class LossReduction : uint8_t {
  kMean,           // The mean, by the weights if samples have weights.
  kSumIfWeighted,  // The sum of the weighted losses if the mean would be weighted; otherwise the mean.
};

// A loss in a graph, of a batch: scalars.
struct LossValues {
  ValueId loss = kNoValue;  // Differentiable, as the LossReduction says.
  // Where the mean is weighted, what it is the quotient of: the sum of the weighted losses, and of the
  // weights. Otherwise kNoValue, and every sample, or position of one, weighs the same.
  ValueId sum = kNoValue;
  ValueId weight = kNoValue;
};

// Appends the loss of `output`, a batch, against `target`: int32 [batch], classes; int32 [batch, length],
// tokens; or numbers of the output's shape. INVALID_ARGUMENT where they do not fit.
absl::StatusOr<LossValues> AddLoss(const v1::Loss& loss, ValueId output, ValueId target, Graph& graph,
                                   LossReduction reduction = LossReduction::kMean);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LOSSES_LOSS_H_
