#ifndef TANDEM_ENGINE_GRAPH_OPS_ACTIVATION_H_
#define TANDEM_ENGINE_GRAPH_OPS_ACTIVATION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// Functions of a single element. Relu has its own op.
enum class ActivationFunction : uint8_t {
  kLeakyRelu,  // x where x > 0, else alpha x.
  kElu,        // x where x > 0, else alpha (exp(x) - 1). Clevert et al. 2016.
  kGelu,       // x (1 + erf(x / sqrt(2))) / 2. Hendrycks and Gimpel 2016.
  kGeluTanh,   // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
  kSigmoid,    // 1 / (1 + exp(-x)).
  kTanh,
  kSilu,       // x sigmoid(x).
  kSoftplus,   // log(1 + exp(alpha x)) / alpha; x where alpha x > threshold.
  kHardSwish,  // x min(max(x + 3, 0), 6) / 6. Howard et al. 2019.
  kSelu,       // kSeluScale x where x > 0, else kSeluScale kSeluAlpha (exp(x) - 1). Klambauer et al. 2017.
};

// With these constants, SELU keeps mean 0 and variance 1 from layer to layer.
inline constexpr double kSeluScale = 1.0507009873554804934;
inline constexpr double kSeluAlpha = 1.6732632423543772848;

// A function with its constants.
struct ActivationRule {
  ActivationFunction function = ActivationFunction::kTanh;
  double alpha = 1;       // For kLeakyRelu, kElu and kSoftplus. Above 0 for kSoftplus.
  double threshold = 20;  // For kSoftplus.
  bool operator==(const ActivationRule&) const = default;
  std::string ToString() const;
};

// activation(x) -> y = rule(x), with x's shape.
class ActivationOp final : public Op {
 public:
  explicit ActivationOp(ActivationRule rule) : rule(rule) {}
  absl::string_view kind() const override { return "activation"; }
  std::string attributes() const override { return rule.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  absl::StatusOr<std::vector<ValueId>> Gradient(Graph& graph, const Node& node,
                                                absl::Span<const ValueId> grad_outputs,
                                                const std::vector<bool>& wanted) const override;
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  ActivationRule rule;
};

// activation_grad(x, grad_y) -> grad_x = rule'(x) grad_y. At kinks the derivative equals PyTorch's.
class ActivationGradOp final : public Op {
 public:
  explicit ActivationGradOp(ActivationRule rule) : rule(rule) {}
  absl::string_view kind() const override { return "activation_grad"; }
  std::string attributes() const override { return rule.ToString(); }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 1}}; }
  OpCost Cost(absl::Span<const TensorType> inputs, absl::Span<const TensorType> outputs) const override;

  ActivationRule rule;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_ACTIVATION_H_
