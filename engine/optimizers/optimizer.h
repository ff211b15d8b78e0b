#ifndef TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_
#define TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Sets missing fields to their defaults.
void FillOptimizerDefaults(v1::Optimizer* optimizer);

// INVALID_ARGUMENT with the wrong fields, relative to the Optimizer ("momentum.dampening"). `optimizer` has
// its defaults, here and below.
absl::Status CheckOptimizer(const v1::Optimizer& optimizer);

// Returns the message's learning rate.
double LearningRateOf(const v1::Optimizer& optimizer);

// Returns whether `parameter` belongs to a frozen group: it has no gradient and no update.
bool IsFrozen(const v1::Optimizer& optimizer, const Value& parameter);

// The order of parameter updates. It affects speed alone. kLastFirst follows the order in which gradients are
// computed and reduced.
enum class UpdateOrder : uint8_t { kAsGiven, kLastFirst };

// Appends the clipping of `gradients`, if requested, and the update of each variable of `parameters` by its
// gradient. The optimizer's state is in variables named "<optimizer's quantity>/<parameter>". `learning_rate`
// is float64 []. `step`, int64 [], counts the earlier steps. A frozen parameter has kNoValue as its gradient.
// `apply`, if given, is float64 []: if it is 0, nothing changes. INVALID_ARGUMENT, as CheckOptimizer, if no
// parameter has a group's name.
absl::Status AddUpdates(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        absl::Span<const ValueId> gradients, ValueId learning_rate, ValueId step,
                        Graph& graph, ValueId apply = kNoValue, UpdateOrder order = UpdateOrder::kAsGiven);

}  // namespace tandem

#endif  // TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_
