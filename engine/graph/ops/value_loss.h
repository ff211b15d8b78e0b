#ifndef TANDEM_ENGINE_GRAPH_OPS_VALUE_LOSS_H_
#define TANDEM_ENGINE_GRAPH_OPS_VALUE_LOSS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Losses of numbers x and targets y, element by element, with d = |x - y|. The formulas are PyTorch's.
struct ValueLossSettings {
  enum class Mode : uint8_t {
    kSquared,   // d^2.
    kAbsolute,  // d.
    kHuber,     // d^2 / 2 if d < width, else width (d - width / 2) (Huber 1964).
    kSmoothL1,  // d^2 / (2 width) if d < width, else d - width / 2. With width 0 it is kAbsolute.
    kLogistic,  // -(w y log sigmoid(x) + (1 - y) log(1 - sigmoid(x))). w is the positive weight.
    kKl,        // y (log y - x), or 0 if y is 0. x is a log-probability, y a probability.
    kKlOfLogs,  // exp(y) (y - x). x and y are log-probabilities.
  };
  enum class Reduction : uint8_t {
    kMean,       // Over all elements.
    kBatchMean,  // The sum divided by the first extent.
    kSum,
  };
  Mode mode = Mode::kSquared;
  double width = 1;  // Above 0. At least 0 for kSmoothL1.
  std::vector<double> positive_weights =
      {};                            // The weights of the last elements of y, repeated over y. Empty: 1.
  std::vector<double> weights = {};  // Factors of the loss, repeated like positive_weights. Empty: 1.
  Reduction reduction = Reduction::kMean;

  // Returns the divisor of the sum, for an x with this shape.
  double Divisor(const Shape& shape) const;
};

// value_loss(x, y) -> loss [], float64 for float64 numbers, else float32. y has x's shape and any
// floating-point type. For kLogistic y may also be int32 [n] for x [n, 1]. Only x is differentiable.
class ValueLossOp final : public Op {
 public:
  explicit ValueLossOp(ValueLossSettings settings) : settings(std::move(settings)) {}
  absl::string_view kind() const override { return "value_loss"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  ValueLossSettings settings;
};

// value_loss_grad(x, y, grad_loss []) -> grad_x, with the type of x. At kinks as in PyTorch: 0 for d = 0.
class ValueLossGradOp final : public Op {
 public:
  explicit ValueLossGradOp(ValueLossSettings settings) : settings(std::move(settings)) {}
  absl::string_view kind() const override { return "value_loss_grad"; }
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  ValueLossSettings settings;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_VALUE_LOSS_H_
