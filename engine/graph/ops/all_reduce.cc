#include "engine/graph/ops/all_reduce.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {

std::string AllReduceOp::attributes() const { return absl::StrCat("scale=", scale, " bucket=", bucket); }

absl::StatusOr<std::vector<TensorType>> AllReduceOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckGradients(*this, inputs, count));
  if (!std::isfinite(scale)) return InputError(*this, inputs, absl::StrCat("scale is ", scale));
  return std::vector<TensorType>(inputs.begin(), inputs.end());
}

std::vector<std::pair<int, int>> AllReduceOp::InPlace() const { return PairsInPlace(0, 0, count); }

int CountAllReduces(const Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [](const Node& node) { return node.op->kind() == "all_reduce"; }));
}

}  // namespace tandem
