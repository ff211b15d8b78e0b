#ifndef TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_
#define TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_

#include "absl/status/status.h"
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

// Appends the update of the variable `parameter` by `gradient`, after the state that the optimizer keeps for
// it, variables named "<optimizer's quantity>/<parameter>". `learning_rate` is float64 [], `step` int64 [],
// the steps taken before this one.
absl::Status AddUpdate(const v1::Optimizer& optimizer, ValueId parameter, ValueId gradient,
                       ValueId learning_rate, ValueId step, Graph& graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_OPTIMIZERS_OPTIMIZER_H_
