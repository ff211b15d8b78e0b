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

// A gradient and the position of its target among the targets.
using GradientReady = std::function<absl::Status(size_t target, ValueId grad)>;

// Appends the backward pass of `loss`, a scalar, to `graph` and returns d loss / d value for each of
// `targets` (variables or inputs), in their order; a target that the loss does not depend on gets a zero
// constant. With `scale`, a value of the loss's type and shape, it is that times d loss / d value.
// Reverse-mode accumulation (Linnainmaa 1970): gradients of a value with several readers are added in the
// reverse order of the readers, so the result does not depend on anything but the graph. Only what leads to a
// target is computed. UNIMPLEMENTED where an op on the way is not differentiable.
//
// `on_ready`, if given, hears of each target's gradient as soon as the nodes that compute it are there,
// before those of earlier nodes' gradients, and may append nodes that read it; its errors are returned.
absl::StatusOr<std::vector<ValueId>> AppendGradients(Graph& graph, ValueId loss,
                                                     absl::Span<const ValueId> targets,
                                                     const GradientReady& on_ready = nullptr,
                                                     ValueId scale = kNoValue);

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_AUTODIFF_H_
