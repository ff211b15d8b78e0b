#include "engine/backends/cuda/kernels/layer_norm.h"

#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/row_threads.h"

namespace tandem::cuda {
namespace {

__device__ __forceinline__ float InvStdOf(const LayerNormGradIn& in, int64_t row) {
  return 1.0f / sqrtf(in.variance[row] + in.epsilon);
}

template <typename T, bool kWholeBlock>
TANDEM_KERNEL LayerNormKernel(Grid grid, int64_t rows, int64_t channels, const T* all_x, const float* weight,
                              const float* bias, float epsilon, T* all_y, float* means, float* variances) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const RowThreads<kWholeBlock> own(block, rows);
    if (!own.exists) continue;
    const T* const x = all_x + own.row * channels;
    T* const y = all_y + own.row * channels;
    const float count = static_cast<float>(channels);
    // Relative to the first number, so that a large mean costs no digits.
    const float shift = ToFloat(x[0]);
    float sum = 0;
    for (int64_t i = own.index; i < channels; i += own.count) sum += ToFloat(x[i]) - shift;
    const float mean = shift + own.Reduce(sum, 0, Sum()) / count;
    float squares = 0;
    for (int64_t i = own.index; i < channels; i += own.count) {
      const float difference = ToFloat(x[i]) - mean;
      squares += difference * difference;
    }
    const float variance = own.Reduce(squares, 0, Sum()) / count;
    const float inv_std = 1.0f / sqrtf(variance + epsilon);
    // y may be x: x[0] has no reader any more.
    for (int64_t i = own.index; i < channels; i += own.count) {
      y[i] = To<T>((ToFloat(x[i]) - mean) * inv_std * weight[i] + bias[i]);
    }
    if (own.index == 0) {
      means[own.row] = mean;
      variances[own.row] = variance;
    }
  }
}

template <typename T, bool kWholeBlock>
TANDEM_KERNEL LayerNormGradKernel(Grid grid, int64_t rows, int64_t channels, LayerNormGradIn in, T* all_dx) {
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const RowThreads<kWholeBlock> own(block, rows);
    if (!own.exists) continue;
    const T* x = static_cast<const T*>(in.x) + own.row * channels;
    const T* dy = static_cast<const T*>(in.dy) + own.row * channels;
    T* const dx = all_dx + own.row * channels;
    const float mean = in.mean[own.row];
    const float inv_std = InvStdOf(in, own.row);
    // Means over the row: of the normalised values' gradient, and of its product with these values.
    float grads = 0;
    float products = 0;
    for (int64_t i = own.index; i < channels; i += own.count) {
      const float grad = ToFloat(dy[i]) * in.weight[i];
      grads += grad;
      products += grad * (ToFloat(x[i]) - mean) * inv_std;
    }
    const float count = static_cast<float>(channels);
    grads = own.Reduce(grads, 0, Sum()) / count;
    products = own.Reduce(products, 0, Sum()) / count;
    for (int64_t i = own.index; i < channels; i += own.count) {
      const float normal = (ToFloat(x[i]) - mean) * inv_std;
      dx[i] = To<T>(inv_std * (ToFloat(dy[i]) * in.weight[i] - grads - normal * products));
    }
  }
}

// Sums of dy, and of dy times the normalised values.
template <typename T, int kPack>
struct ColumnTerms {
  static constexpr int kRows = kRowsInFlight;
  struct Items {
    Pack<T, kPack> x, dy;
  };
  struct Channels {
    __device__ Channels(const ColumnTerms&, int64_t, int64_t) {}
  };
  __device__ Items Load(int64_t first) const {
    return {LoadPack<T, kPack>(in.x, first), LoadPack<T, kPack>(in.dy, first)};
  }
  __device__ void Add(const Items& items, const Channels&, int64_t first, float (&sums)[2 * kPack]) const {
    const int64_t row = first / channels;
    const float mean = in.mean[row];
    const float inv_std = InvStdOf(in, row);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float grad = ToFloat(items.dy.items[j]);
      sums[j] += grad;
      sums[kPack + j] += grad * (ToFloat(items.x.items[j]) - mean) * inv_std;
    }
  }
  LayerNormGradIn in;
  int64_t channels;
};

struct FinishColumns {
  __device__ void operator()(int64_t channel, float sum, float product) const {
    dbias[channel] = sum;
    dweight[channel] = product;
  }
  float* dweight;
  float* dbias;
};

template <typename T, int kPack>
void RunColumns(Pack<T, kPack>, const ChannelRows& sizes, const LayerNormGradIn& in,
                const SumScratch& scratch, const FinishColumns& finish, Stream stream) {
  RunSums<kPack>(sizes, ColumnTerms<T, kPack>{in, sizes.channels}, scratch, finish, stream);
}

}  // namespace

void LayerNorm(const ChannelRows& sizes, const void* x, const float* weight, const float* bias, float epsilon,
               void* y, float* mean, float* variance, Stream stream) {
  WithNumber(sizes.type, [&](auto number) {
    using T = decltype(number);
    WithRowThreads(sizes.rows, sizes.channels, [&](auto whole_block, Grid grid) {
      Launch(LayerNormKernel<T, decltype(whole_block)::value>, grid, Threads(kRowThreads), stream, sizes.rows,
             sizes.channels, static_cast<const T*>(x), weight, bias, epsilon, static_cast<T*>(y), mean,
             variance);
    });
  });
}

void LayerNormGrad(const ChannelRows& sizes, const LayerNormGradIn& in, const SumScratch& scratch, void* dx,
                   float* dweight, float* dbias, Stream stream) {
  // First, because dx may be x or dy.
  WithPackOf(sizes, [&](auto pack) {
    RunColumns(pack, sizes, in, scratch, FinishColumns{dweight, dbias}, stream);
  });
  WithNumber(sizes.type, [&](auto number) {
    using T = decltype(number);
    WithRowThreads(sizes.rows, sizes.channels, [&](auto whole_block, Grid grid) {
      Launch(LayerNormGradKernel<T, decltype(whole_block)::value>, grid, Threads(kRowThreads), stream,
             sizes.rows, sizes.channels, in, static_cast<T*>(dx));
    });
  });
}

}  // namespace tandem::cuda
