#include "engine/backends/cuda/kernels/elementwise.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/map.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

struct Relu {
  __device__ __forceinline__ float operator()(float a, float) const { return a < 0 ? 0 : a; }
};
struct ReluGrad {
  __device__ __forceinline__ float operator()(float a, float b) const { return a <= 0 ? 0 : b; }
};
struct Add {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Multiply {
  __device__ __forceinline__ float operator()(float a, float b) const { return a * b; }
};
struct Scale {
  float factor;
  __device__ __forceinline__ float operator()(float a, float) const { return factor * a; }
};
struct DivideBy {
  float factor;
  const float* divisor;
  __device__ __forceinline__ float operator()(float a, float) const {
    return *divisor == 0 ? 0.0f : factor / *divisor * a;
  }
};

template <typename T>
void RunTyped(Elementwise what, int64_t elements, const void* a, const void* b, float factor, void* y,
              Stream stream) {
  switch (what) {
    case Elementwise::kRelu:
      return MapPairs<T>(elements, a, a, y, Relu(), stream);
    case Elementwise::kReluGrad:
      return MapPairs<T>(elements, a, b, y, ReluGrad(), stream);
    case Elementwise::kAdd:
      return MapPairs<T>(elements, a, b, y, Add(), stream);
    case Elementwise::kMultiply:
      return MapPairs<T>(elements, a, b, y, Multiply(), stream);
    case Elementwise::kScale:
      return MapPairs<T>(elements, a, a, y, Scale{factor}, stream);
  }
}

}  // namespace

void RunElementwise(Elementwise what, int64_t elements, DType type, const void* a, const void* b,
                    float factor, void* y, Stream stream) {
  WithNumber(type, [&](auto number) { RunTyped<decltype(number)>(what, elements, a, b, factor, y, stream); });
}

void DivideByNumber(int64_t elements, DType type, const void* x, float factor, const float* divisor, void* y,
                    Stream stream) {
  WithNumber(type, [&](auto number) {
    MapPairs<decltype(number)>(elements, x, x, y, DivideBy{factor, divisor}, stream);
  });
}

void ScaleNumber(const double* x, double factor, double* y, Stream stream) {
  ForEach(1, stream, [=] __device__(int64_t) { *y = factor * *x; });
}

}  // namespace tandem::cuda
