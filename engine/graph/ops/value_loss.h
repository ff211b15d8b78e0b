#ifndef TANDEM_ENGINE_GRAPH_OPS_VALUE_LOSS_H_
#define TANDEM_ENGINE_GRAPH_OPS_VALUE_LOSS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Losses of numbers x against numbers y, element by element; d = |x - y|. Formulas are PyTorch's.
struct ValueLossSettings {
  enum class Mode : uint8_t {
    kSquared,   // d^2.
    kAbsolute,  // d.
    kHuber,     // d^2 / 2 where d < width, else width (d - width / 2) (Huber 1964).
    kSmoothL1,  // d^2 / (2 width) where d < width, else d - width / 2; a width of 0 is kAbsolute.
    kLogistic,  // -(w y log sigmoid(x) + (1 - y) log(1 - sigmoid(x))), w the positive weight.
    kKl,        // y (log y - x), 0 where y is: x is a log-probability, y a probability.
    kKlOfLogs,  // exp(y) (y - x): y is a log-probability too.
  };
  enum class Reduction : uint8_t {
    kMean,       // Over all elements.
    kBatchMean,  // The sum divided by the first extent.
    kSum,
  };
  Mode mode = Mode::kSquared;
  double width = 1;  // Above 0; of kSmoothL1 at least 0.
  std::vector<double> positive_weights =
      {};                            // One for each of the last elements of y, over and over; empty: 1.
  std::vector<double> weights = {};  // That multiply the loss, likewise.
  Reduction reduction = Reduction::kMean;

  // What divides the sum, for x of such a shape.
  double Divisor(const Shape& shape) const;
};

// value_loss(x, y) -> loss [], float64 for float64 numbers, else float32. y is of x's shape and of any
// floating-point type; for kLogistic it may be int32 [n] for x [n, 1]. Only x is differentiable.
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

// value_loss_grad(x, y, grad_loss []) -> grad_x, of the type of x. At a kink it is PyTorch's: 0 for d = 0.
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
