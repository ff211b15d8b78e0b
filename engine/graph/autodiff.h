#ifndef TANDEM_ENGINE_GRAPH_AUTODIFF_H_
#define TANDEM_ENGINE_GRAPH_AUTODIFF_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/graph.h"

namespace tandem {

// Receives a gradient. `target` is a position in `targets`.
using GradientReady = std::function<absl::Status(size_t target, ValueId grad)>;

// Appends the backward pass of `loss`, a scalar, to `graph`. Returns d loss / d value for each value of
// `targets` (variables or inputs), in their order. A target without influence on the loss gets a zero
// constant. If given, `scale` multiplies the gradients; it has the loss's type and shape.
//
// Uses reverse-mode accumulation (Linnainmaa 1970). Gradients of a value with several readers are added in
// the reverse order of the readers, so the result depends on the graph alone. Computes only gradients on a
// path to a target. UNIMPLEMENTED if an op on the way is not differentiable. INVALID_ARGUMENT if `loss` is no
// floating-point scalar, or if a type does not fit. FAILED_PRECONDITION if an op in `graph` already changes a
// target.
//
// Calls `on_ready` for each target as soon as the nodes of its gradient exist, so the last layers' targets
// come first. `on_ready` may append nodes that read the gradient. Returns an error of `on_ready`.
absl::StatusOr<std::vector<ValueId>> AppendGradients(Graph& graph, ValueId loss,
                                                     absl::Span<const ValueId> targets,
                                                     const GradientReady& on_ready = nullptr,
                                                     ValueId scale = kNoValue);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_AUTODIFF_H_
