#ifndef TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_
#define TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Sets the fields that have a default and are left out.
void FillOptimizerDefaults(v1::Optimizer* optimizer);

// INVALID_ARGUMENT with the fields at fault, relative to the Optimizer ("momentum.dampening"). `optimizer`
// has its defaults filled in, here and below.
absl::Status CheckOptimizer(const v1::Optimizer& optimizer);

// The rate that the message gives.
double LearningRateOf(const v1::Optimizer& optimizer);

// Whether the variable `parameter` belongs to a group that stays as it is: it has no gradient and no update.
bool IsFrozen(const v1::Optimizer& optimizer, const Value& parameter);

// In which order parameters are updated, where nothing but speed depends on it: as they are given, or the
// last first, as gradients come and are reduced.
enum class UpdateOrder : uint8_t { kAsGiven, kLastFirst };

// Appends the clipping of `gradients`, if it is asked for, and the update of each of the variables
// `parameters` by its gradient, with the state that the optimizer keeps for it, variables named
// "<optimizer's quantity>/<parameter>". `learning_rate` is float64 [], `step` int64 [], the steps taken
// before this one. A parameter that stays as it is has kNoValue for its gradient. `apply`, if given, is
// float64 []: where it is 0, nothing changes. INVALID_ARGUMENT, as CheckOptimizer's, for a group's name that
// no parameter has.
absl::Status AddUpdates(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        absl::Span<const ValueId> gradients, ValueId learning_rate, ValueId step,
                        Graph& graph, ValueId apply = kNoValue, UpdateOrder order = UpdateOrder::kAsGiven);

}  // namespace tandem

#endif  // TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_
