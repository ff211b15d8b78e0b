#ifndef TANDEM_ENGINE_LOSSES_LOSS_H_
#define TANDEM_ENGINE_LOSSES_LOSS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/target.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Sets missing fields to their defaults.
void FillLossDefaults(v1::Loss* loss);

// Checks the message alone. INVALID_ARGUMENT with the wrong fields, relative to the Loss ("huber.delta").
// `loss` has its defaults, here and below.
absl::Status CheckLoss(const v1::Loss& loss);

// Checks that the loss accepts these targets. INVALID_ARGUMENT as CheckLoss.
absl::Status CheckLossTarget(const v1::Loss& loss, const Target& target);

// Returns the class or token that the loss ignores, if it has one.
std::optional<int64_t> IgnoreIndexOf(const v1::Loss& loss);

// Returns whether targets that are values must be in [0, 1].
bool TakesProbabilities(const v1::Loss& loss);

// Returns whether the loss of scaled targets can be reported in the scale of the data.
bool TakesScaledTargets(const v1::Loss& loss);

// Returns why a network with this output for a single sample does not fit the loss and the targets ("gives
// [10], but ..."), or "". The loss and the targets fit each other.
std::string OutputFault(const v1::Loss& loss, const Target& target, const Shape& output);

// Returns the loss for a network whose targets and outputs are divided by `deviation`. Divides delta and beta
// too, so that the loss keeps its meaning. Divides nothing if `deviation` is 0.
v1::Loss InScaleOf(double deviation, v1::Loss loss);

// The meaning of LossValues::loss.
enum class LossReduction : uint8_t {
  kMean,           // The mean, weighted if samples have weights.
  kSumIfWeighted,  // The sum of the weighted losses if the mean would be weighted. Otherwise the mean.
};

// The loss of a batch in a graph, as scalars.
struct LossValues {
  ValueId loss = kNoValue;  // Differentiable. See LossReduction.
  // If the mean is weighted: the sum of the weighted losses, and the sum of the weights. Otherwise kNoValue,
  // and all samples or positions have the same weight.
  ValueId sum = kNoValue;
  ValueId weight = kNoValue;
};

// Appends the loss of `output`, a batch, for `target`. The target is int32 [batch] for classes, int32 [batch,
// length] for tokens, or numbers with the output's shape. INVALID_ARGUMENT if they do not fit.
absl::StatusOr<LossValues> AddLoss(const v1::Loss& loss, ValueId output, ValueId target, Graph& graph,
                                   LossReduction reduction = LossReduction::kMean);

// Converts settings such as class_weights and ignore_index, which name the data's classes by number, to the
// labels of these classes in the model. `labels` is DatasetInfo::class_labels. INVALID_ARGUMENT as CheckLoss
// if a setting cannot be converted.
absl::Status RelabelClasses(const std::vector<int32_t>& labels, v1::Loss* loss);

// Replaces balance_classes by class_weights: samples / (classes * samples of the class), and 0 for a class
// without samples. `counts` has the training samples of each class. Does nothing without balance_classes.
void BalanceClasses(const std::vector<int64_t>& counts, v1::Loss* loss);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LOSSES_LOSS_H_
