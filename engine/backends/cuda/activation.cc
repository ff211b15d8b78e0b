#include "engine/backends/cuda/kernels/activation.h"

#include "engine/backends/cuda/elementwise.h"
#include "engine/backends/cuda/offered.h"
#include "engine/graph/ops/activation.h"

namespace tandem::cuda {
namespace {

ActivationCurve::Kind KindOf(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::kLeakyRelu:
      return ActivationCurve::Kind::kLeakyRelu;
    case ActivationFunction::kElu:
      return ActivationCurve::Kind::kElu;
    case ActivationFunction::kGelu:
      return ActivationCurve::Kind::kGelu;
    case ActivationFunction::kGeluTanh:
      return ActivationCurve::Kind::kGeluTanh;
    case ActivationFunction::kSigmoid:
      return ActivationCurve::Kind::kSigmoid;
    case ActivationFunction::kTanh:
      return ActivationCurve::Kind::kTanh;
    case ActivationFunction::kSilu:
      return ActivationCurve::Kind::kSilu;
    case ActivationFunction::kSoftplus:
      return ActivationCurve::Kind::kSoftplus;
    case ActivationFunction::kHardSwish:
      return ActivationCurve::Kind::kHardSwish;
    case ActivationFunction::kSelu:
      return ActivationCurve::Kind::kSelu;
  }
  return ActivationCurve::Kind::kTanh;
}

ActivationCurve CurveOf(const ActivationRule& rule) {
  return {.kind = KindOf(rule.function),
          .alpha = static_cast<float>(rule.alpha),
          .threshold = static_cast<float>(rule.threshold)};
}

absl::Status LowerActivation(Lowering& lowering, const Node& node) {
  const ActivationCurve curve = CurveOf(static_cast<const ActivationOp&>(*node.op).rule);
  return LowerPairs(lowering, node,
                    [curve](int64_t elements, DType type, const void* x, const void*, void* y,
                            Stream stream) { Activate(curve, elements, type, x, y, stream); });
}

absl::Status LowerActivationGrad(Lowering& lowering, const Node& node) {
  const ActivationCurve curve = CurveOf(static_cast<const ActivationGradOp&>(*node.op).rule);
  return LowerPairs(lowering, node,
                    [curve](int64_t elements, DType type, const void* x, const void* dy, void* dx,
                            Stream stream) { ActivateGrad(curve, elements, type, x, dy, dx, stream); });
}

}  // namespace

absl::Span<const Offered> ActivationOps() {
  static constexpr Offered kOps[] = {
      {"activation", LowerActivation},
      {"activation_grad", LowerActivationGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
