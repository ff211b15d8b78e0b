#include "engine/backends/cuda/kernels/activation.h"

#include "engine/backends/cuda/kernels/map.h"

namespace tandem::cuda {
namespace {

using Kind = ActivationCurve::Kind;

constexpr float kGeluCubic = 0.044715f;
constexpr float kRootOfHalf = 0.70710678118654752f;
constexpr float kRootOfTwoByPi = 0.79788456080286536f;
constexpr float kRootOfTwoPi = 2.50662827463100050f;
constexpr float kSeluScale = 1.05070098735548049f;
constexpr float kSeluAlpha = 1.67326324235437728f;

__device__ __forceinline__ float Sigmoid(float x) { return 1 / (1 + expf(-x)); }

// The tangent within the approximate GELU.
__device__ __forceinline__ float GeluTanh(float x) {
  return tanhf(kRootOfTwoByPi * (x + kGeluCubic * x * x * x));
}

struct Evaluate {
  ActivationCurve curve;
  __device__ __forceinline__ float operator()(float x, float) const {
    switch (curve.kind) {
      case Kind::kLeakyRelu:
        return x > 0 ? x : curve.alpha * x;
      case Kind::kElu:
        return x > 0 ? x : curve.alpha * expm1f(x);
      case Kind::kGelu:
        return 0.5f * x * (1 + erff(x * kRootOfHalf));
      case Kind::kGeluTanh:
        return 0.5f * x * (1 + GeluTanh(x));
      case Kind::kSigmoid:
        return Sigmoid(x);
      case Kind::kTanh:
        return tanhf(x);
      case Kind::kSilu:
        return x * Sigmoid(x);
      case Kind::kSoftplus:
        return curve.alpha * x > curve.threshold ? x : log1pf(expf(curve.alpha * x)) / curve.alpha;
      case Kind::kHardSwish:
        return x * fminf(fmaxf(x + 3, 0.0f), 6.0f) / 6;
      case Kind::kSelu:
        return kSeluScale * (x > 0 ? x : kSeluAlpha * expm1f(x));
    }
    return 0;
  }
};

struct Slope {
  ActivationCurve curve;
  __device__ __forceinline__ float operator()(float x, float dy) const { return dy * At(x); }
  __device__ __forceinline__ float At(float x) const {
    switch (curve.kind) {
      case Kind::kLeakyRelu:
        return x > 0 ? 1 : curve.alpha;
      case Kind::kElu:
        return x > 0 ? 1 : curve.alpha * expf(x);
      case Kind::kGelu:
        return 0.5f * (1 + erff(x * kRootOfHalf)) + x * expf(-0.5f * x * x) / kRootOfTwoPi;
      case Kind::kGeluTanh: {
        const float t = GeluTanh(x);
        return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * kRootOfTwoByPi * (1 + 3 * kGeluCubic * x * x);
      }
      case Kind::kSigmoid: {
        const float y = Sigmoid(x);
        return y * (1 - y);
      }
      case Kind::kTanh: {
        const float y = tanhf(x);
        return 1 - y * y;
      }
      case Kind::kSilu: {
        const float y = Sigmoid(x);
        return y * (1 + x * (1 - y));
      }
      case Kind::kSoftplus:
        return curve.alpha * x > curve.threshold ? 1 : Sigmoid(curve.alpha * x);
      case Kind::kHardSwish:
        return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5f : 1;
      case Kind::kSelu:
        return kSeluScale * (x > 0 ? 1 : kSeluAlpha * expf(x));
    }
    return 0;
  }
};

}  // namespace

void Activate(const ActivationCurve& curve, int64_t elements, DType type, const void* x, void* y,
              Stream stream) {
  WithNumber(type,
             [&](auto number) { MapPairs<decltype(number)>(elements, x, x, y, Evaluate{curve}, stream); });
}

void ActivateGrad(const ActivationCurve& curve, int64_t elements, DType type, const void* x, const void* dy,
                  void* dx, Stream stream) {
  WithNumber(type,
             [&](auto number) { MapPairs<decltype(number)>(elements, x, dy, dx, Slope{curve}, stream); });
}

}  // namespace tandem::cuda
