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
  if (count < 1)
    return InputError(*this, inputs, absl::StrCat("count is ", count, ", but must be at least 1"));
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, count, count));
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(*this, inputs, 0, inputs.size() - 1));
  if (!std::isfinite(scale)) return InputError(*this, inputs, absl::StrCat("scale is ", scale));
  return std::vector<TensorType>(inputs.begin(), inputs.end());
}

std::vector<std::pair<int, int>> AllReduceOp::InPlace() const {
  std::vector<std::pair<int, int>> pairs;
  for (int i = 0; i < count; ++i) pairs.emplace_back(i, i);
  return pairs;
}

int CountAllReduces(const Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [](const Node& node) { return node.op->kind() == "all_reduce"; }));
}

}  // namespace tandem
