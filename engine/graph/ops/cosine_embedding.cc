#include "engine/graph/ops/cosine_embedding.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/graph.h"
#include "engine/graph/ops/gradient_rules.h"
#include "engine/graph/ops/input_rules.h"

namespace tandem {
namespace {

absl::Status CheckVectors(const Op& op, double margin, absl::Span<const TensorType> inputs) {
  if (!(margin >= -1 && margin <= 1)) {
    return InputError(op, inputs, absl::StrCat("margin is ", margin, ", not in [-1, 1]"));
  }
  TANDEM_RETURN_IF_ERROR(CheckOneFloatingType(op, inputs, 0, 0));
  const Shape& first = inputs[0].shape;
  if (first.rank() < 2 || first.elements() == 0) {
    return InputError(op, inputs, "the vectors must be [count, ...], not empty");
  }
  if (IsFloatingPoint(inputs[1].dtype)) {
    return inputs[1].shape == first ? absl::OkStatus()
                                    : InputError(op, inputs, "x and y must have the same shape");
  }
  const bool pairs = first.rank() == 3 && first[1] == 2;
  if (pairs && inputs[1] == TensorType{DType::kInt32, Shape({first[0]})}) return absl::OkStatus();
  return InputError(op, inputs, "must be of pairs [count, 2, size] and int32 [count], or of x and y");
}

std::string AttributesOf(double margin, bool sum) {
  return absl::StrCat("margin=", margin, sum ? " sum" : "");
}

constexpr double kCosineFlopsPerElement = 6;  // Three products of two vectors.

}  // namespace

std::string CosineEmbeddingOp::attributes() const { return AttributesOf(margin, sum); }

absl::StatusOr<std::vector<TensorType>> CosineEmbeddingOp::Infer(absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 2, 2));
  TANDEM_RETURN_IF_ERROR(CheckVectors(*this, margin, inputs));
  return std::vector<TensorType>{{SumType(inputs[0].dtype), Shape()}};
}

absl::StatusOr<std::vector<ValueId>> CosineEmbeddingOp::Gradient(Graph& graph, const Node& node,
                                                                 absl::Span<const ValueId> grad_outputs,
                                                                 const std::vector<bool>& wanted) const {
  if (wanted[1]) return absl::UnimplementedError("cosine_embedding: its targets have no gradient");
  return GradientOfFirst(graph, wanted, std::make_shared<CosineEmbeddingGradOp>(margin, sum),
                         {node.inputs[0], node.inputs[1], grad_outputs[0]});
}

OpCost CosineEmbeddingOp::Cost(absl::Span<const TensorType> inputs,
                               absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kCosineFlopsPerElement, inputs);
}

std::string CosineEmbeddingGradOp::attributes() const { return AttributesOf(margin, sum); }

absl::StatusOr<std::vector<TensorType>> CosineEmbeddingGradOp::Infer(
    absl::Span<const TensorType> inputs) const {
  TANDEM_RETURN_IF_ERROR(CheckInputCount(*this, inputs, 3, 3));
  TANDEM_RETURN_IF_ERROR(CheckVectors(*this, margin, inputs));
  TANDEM_RETURN_IF_ERROR(CheckLossGradient(*this, inputs));
  return std::vector<TensorType>{inputs[0]};
}

OpCost CosineEmbeddingGradOp::Cost(absl::Span<const TensorType> inputs,
                                   absl::Span<const TensorType> outputs) const {
  return WithFlops(Op::Cost(inputs, outputs), kCosineFlopsPerElement, inputs);
}

CosineVectors::CosineVectors(const Shape& first, bool pairs)
    : count(first[0]),
      size(first.elements() / first[0] / (pairs ? 2 : 1)),
      first_stride(pairs ? 2 * size : size),
      second_stride(first_stride),
      second_offset(pairs ? size : 0),
      pairs(pairs) {}

}  // namespace tandem
