#ifndef TANDEM_ENGINE_GRAPH_OPS_CLASS_LOSS_H_
#define TANDEM_ENGINE_GRAPH_OPS_CLASS_LOSS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Losses of rows of scores [..., C] with a class for each row. The formulas are PyTorch's.
struct ClassLossSettings {
  enum class Mode : uint8_t {
    // The loss of a row is -sum_c a[c] log softmax(x)[c], with a[c] = weight[c] ((1 - e) [c = target] + e /
    // C). e is the label smoothing (Szegedy et al. 2016).
    kCrossEntropy,
    // As kCrossEntropy, but x holds log-probabilities and e is 0.
    kLogLikelihood,
    // weight[target] / C times the sum of max(0, margin - x[target] + x[c])^p over the other classes.
    kHinge,
  };
  Mode mode = Mode::kCrossEntropy;
  double label_smoothing = 0;                // In [0, 1).
  std::vector<double> weights = {};          // A weight of at least 0 for each class. Empty: all 1.
  std::optional<int64_t> ignore_index = {};  // Rows with this target are ignored.
  int p = 1;                                 // 1 or 2.
  double margin = 1;
  bool sum = false;  // If true, the loss is the sum over the rows, without a division.

  double WeightOf(int64_t target) const { return weights.empty() ? 1 : weights[target]; }
  // Returns a row's share in the divisor of the loss. The share is the weight of the row's class. It is 1 for
  // kHinge, whose weights do not divide. (Rows of mixed classes always count 1.)
  double DivisorOf(int64_t target) const { return mode == Mode::kHinge ? 1 : WeightOf(target); }
};

// class_loss(x [..., C], target int32 [...]) -> loss [], loss_sum [], weight []. loss_sum adds up the losses
// of the rows, weight their divisors (DivisorOf). loss is loss_sum / weight, or 0 if weight is 0. With `sum`,
// loss is loss_sum. All three are float64 for float64 scores, else float32. Only loss is differentiable.
//
// kCrossEntropy also accepts a floating-point target [..., C] of probabilities q. Then a[c] = weight[c] ((1 -
// e) q[c] + e / C), the divisor of each row is 1, and there is no ignore_index.
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

// class_loss_grad(x, target, grad_loss []) -> grad_x, with the type of x.
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
