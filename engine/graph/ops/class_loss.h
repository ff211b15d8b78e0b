#ifndef TANDEM_ENGINE_GRAPH_OPS_CLASS_LOSS_H_
#define TANDEM_ENGINE_GRAPH_OPS_CLASS_LOSS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Losses of rows of scores [..., C] against a class a row. Formulas are PyTorch's.
struct ClassLossSettings {
  enum class Mode : uint8_t {
    // Row n's loss is -sum_c a[c] log softmax(x)[c], with a[c] = weight[c] ((1 - e) [c = target] + e / C) and
    // e the label smoothing (Szegedy et al. 2016).
    kCrossEntropy,
    // The same of x itself, which holds log-probabilities; e is 0.
    kLogLikelihood,
    // weight[target] / C times the sum of max(0, margin - x[target] + x[c])^p over the other classes.
    kHinge,
  };
  Mode mode = Mode::kCrossEntropy;
  double label_smoothing = 0;                // In [0, 1).
  std::vector<double> weights = {};          // One a class, at least 0; empty: 1.
  std::optional<int64_t> ignore_index = {};  // Rows of this target count for nothing.
  int p = 1;                                 // 1 or 2.
  double margin = 1;
  bool sum = false;  // The rows' losses are added up, and nothing divides.

  double WeightOf(int64_t target) const { return weights.empty() ? 1 : weights[target]; }
  // By what a row counts in the number that divides: its class's weight, or 1 where classes are mixed and in
  // kHinge, whose weights do not divide.
  double DivisorOf(int64_t target) const { return mode == Mode::kHinge ? 1 : WeightOf(target); }
};

// class_loss(x [..., C], target int32 [...]) -> loss [], loss_sum [], weight []: loss_sum adds up the rows'
// losses, weight what they count by, and loss is their quotient, 0 where weight is; with `sum`, loss is
// loss_sum. All three are float64 for float64 scores, else float32. Only the loss is differentiable.
//
// kCrossEntropy also takes a target of floating-point numbers [..., C] that are probabilities q: then a[c] =
// weight[c] ((1 - e) q[c] + e / C), each row counts by 1, and there is no ignore_index.
class ClassLossOp final : public Op {
 public:
  explicit ClassLossOp(ClassLossSettings settings) : settings(std::move(settings)) {}
  absl::string_view kind() const override { return "class_loss"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  ClassLossSettings settings;
};

// class_loss_grad(x, target, grad_loss []) -> grad_x, of the type of x.
class ClassLossGradOp final : public Op {
 public:
  explicit ClassLossGradOp(ClassLossSettings settings) : settings(std::move(settings)) {}
  absl::string_view kind() const override { return "class_loss_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  ClassLossSettings settings;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_CLASS_LOSS_H_
