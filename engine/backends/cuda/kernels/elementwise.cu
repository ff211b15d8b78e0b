#include "engine/backends/cuda/kernels/elementwise.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

struct Relu {
  __device__ __forceinline__ float operator()(float a, float) const { return a < 0 ? 0 : a; }
};
struct ReluGrad {
  __device__ __forceinline__ float operator()(float a, float b) const { return a > 0 ? b : 0; }
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

// 16 bytes a thread at a time. Memory of tensors is 256-byte aligned.
template <typename T, typename Function>
TANDEM_KERNEL ElementwiseKernel(int64_t elements, const T* a, const T* b, T* y, Function function) {
  constexpr int kCount = 16 / sizeof(T);
  using Items = Pack<T, kCount>;
  const int64_t packs = elements / kCount;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int64_t i = first; i < packs; i += stride) {
    const Items x = reinterpret_cast<const Items*>(a)[i];
    const Items z = reinterpret_cast<const Items*>(b)[i];
    Items result;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      result.items[j] = To<T>(function(ToFloat(x.items[j]), ToFloat(z.items[j])));
    }
    reinterpret_cast<Items*>(y)[i] = result;
  }
  const int64_t rest = packs * kCount + first;
  if (rest < elements) y[rest] = To<T>(function(ToFloat(a[rest]), ToFloat(b[rest])));
}

template <typename T, typename Function>
void Run(int64_t elements, const void* a, const void* b, void* y, Function function, Stream stream) {
  if (elements == 0) return;
  const int64_t packs = elements / (16 / static_cast<int64_t>(sizeof(T))) + 1;
  const int64_t blocks = std::min<int64_t>((packs + kThreads - 1) / kThreads, 1 << 16);
  Launch(ElementwiseKernel<T, Function>, {static_cast<unsigned>(blocks)}, kThreads, stream, elements,
         static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(y), function);
}

template <typename T>
void RunTyped(Elementwise what, int64_t elements, const void* a, const void* b, float factor, void* y,
              Stream stream) {
  switch (what) {
    case Elementwise::kRelu:
      return Run<T>(elements, a, a, y, Relu(), stream);
    case Elementwise::kReluGrad:
      return Run<T>(elements, a, b, y, ReluGrad(), stream);
    case Elementwise::kAdd:
      return Run<T>(elements, a, b, y, Add(), stream);
    case Elementwise::kMultiply:
      return Run<T>(elements, a, b, y, Multiply(), stream);
    case Elementwise::kScale:
      return Run<T>(elements, a, a, y, Scale{factor}, stream);
  }
}

}  // namespace

void RunElementwise(Elementwise what, int64_t elements, DType type, const void* a, const void* b,
                    float factor, void* y, Stream stream) {
  WithNumber(type, [&](auto number) { RunTyped<decltype(number)>(what, elements, a, b, factor, y, stream); });
}

void ScaleNumber(const double* x, double factor, double* y, Stream stream) {
  ForEach(1, stream, [=] __device__(int64_t) { *y = factor * *x; });
}

}  // namespace tandem::cuda
