#include "engine/graph/ops/activation.h"

#include <cmath>

#include "engine/backends/reference/kernel.h"

namespace tandem::reference {
namespace {

constexpr double kGeluCubic = 0.044715;

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The tangent within the approximate GELU.
double GeluTanh(double x) { return std::tanh(std::sqrt(2 / M_PI) * (x + kGeluCubic * x * x * x)); }

double Evaluate(const ActivationRule& rule, double x) {
  switch (rule.function) {
    case ActivationFunction::kLeakyRelu:
      return x > 0 ? x : rule.alpha * x;
    case ActivationFunction::kElu:
      return x > 0 ? x : rule.alpha * std::expm1(x);
    case ActivationFunction::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case ActivationFunction::kGeluTanh:
      return 0.5 * x * (1 + GeluTanh(x));
    case ActivationFunction::kSigmoid:
      return Sigmoid(x);
    case ActivationFunction::kTanh:
      return std::tanh(x);
    case ActivationFunction::kSilu:
      return x * Sigmoid(x);
    case ActivationFunction::kSoftplus:
      return rule.alpha * x > rule.threshold ? x : std::log1p(std::exp(rule.alpha * x)) / rule.alpha;
    case ActivationFunction::kHardSwish:
      return x * std::fmin(std::fmax(x + 3, 0), 6) / 6;
    case ActivationFunction::kSelu:
      return kSeluScale * (x > 0 ? x : kSeluAlpha * std::expm1(x));
  }
  return 0;
}

double Slope(const ActivationRule& rule, double x) {
  switch (rule.function) {
    case ActivationFunction::kLeakyRelu:
      return x > 0 ? 1 : rule.alpha;
    case ActivationFunction::kElu:
      return x > 0 ? 1 : rule.alpha * std::exp(x);
    case ActivationFunction::kGelu:
      return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
    case ActivationFunction::kGeluTanh: {
      const double t = GeluTanh(x);
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * kGeluCubic * x * x);
    }
    case ActivationFunction::kSigmoid:
      return Sigmoid(x) * (1 - Sigmoid(x));
    case ActivationFunction::kTanh:
      return 1 - std::tanh(x) * std::tanh(x);
    case ActivationFunction::kSilu:
      return Sigmoid(x) * (1 + x * (1 - Sigmoid(x)));
    case ActivationFunction::kSoftplus:
      return rule.alpha * x > rule.threshold ? 1 : Sigmoid(rule.alpha * x);
    case ActivationFunction::kHardSwish:
      return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1;
    case ActivationFunction::kSelu:
      return kSeluScale * (x > 0 ? 1 : kSeluAlpha * std::exp(x));
  }
  return 0;
}

}  // namespace

absl::Status Activation(const KernelCall& call) {
  const ActivationRule& rule = call.op<ActivationOp>().rule;
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<double> y = Numbers(call.outputs[0]);
  for (size_t i = 0; i < y.size(); ++i) y[i] = Evaluate(rule, x[i]);
  return absl::OkStatus();
}

absl::Status ActivationGrad(const KernelCall& call) {
  const ActivationRule& rule = call.op<ActivationGradOp>().rule;
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const absl::Span<const double> grad_y = Numbers(call.inputs[1]);
  const absl::Span<double> grad_x = Numbers(call.outputs[0]);
  for (size_t i = 0; i < grad_x.size(); ++i) grad_x[i] = Slope(rule, x[i]) * grad_y[i];
  return absl::OkStatus();
}

}  // namespace tandem::reference
