#include "engine/graph/op.h"

#include "absl/strings/str_cat.h"
#include "engine/graph/graph.h"

namespace tandem {
namespace {

double Bytes(absl::Span<const TensorType> types) {
  double bytes = 0;
  for (const TensorType& type : types) {
    bytes += static_cast<double>(type.shape.elements()) * SizeOf(type.dtype);
  }
  return bytes;
}

}  // namespace

std::string TensorType::ToString() const { return absl::StrCat(tandem::ToString(dtype), shape.ToString()); }

absl::StatusOr<std::vector<ValueId>> Op::Gradient(Graph& /*graph*/, const Node& /*node*/,
                                                  absl::Span<const ValueId> /*grad_outputs*/,
                                                  const std::vector<bool>& /*wanted*/) const {
  return absl::UnimplementedError(absl::StrCat(kind(), " is not differentiable"));
}

OpCost Op::Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const {
  OpCost cost;
  cost.bytes = Bytes(inputs) + Bytes(outputs);
  // A mutated input is read and written.
  for (const int i : MutatedInputs()) cost.bytes += Bytes(inputs.subspan(i, 1));
  for (const TensorType& output : outputs) cost.flops += output.shape.elements();
  return cost;
}

}  // namespace tandem
