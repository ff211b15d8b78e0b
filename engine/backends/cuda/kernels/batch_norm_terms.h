#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_TERMS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_TERMS_H_

#include <cstdint>

#include "engine/backends/cuda/kernels/batch_norm.h"
#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/number.h"

// The computations of batch normalisation kernels for a row and for a channel.

namespace tandem::cuda {

__device__ __forceinline__ float InvStdOf(const ChannelNorm& norm, int64_t channel) {
  const float deviation = norm.deviation[channel];
  return norm.epsilon < 0 ? deviation : 1.0f / sqrtf(deviation + norm.epsilon);
}
__device__ __forceinline__ float FactorOf(const ChannelNorm& norm, int64_t channel) {
  return norm.weight[channel] * InvStdOf(norm, channel);
}
// The normalised number, equal to the last bit in both passes of a network.
__device__ __forceinline__ float Normalized(float x, float mean, float factor, float bias) {
  return fmaf(x - mean, factor, bias);
}

// Sums of x and its square, both minus the channel's first number, so that large means cost no digits.
template <typename T, int kPack>
struct MomentTerms {
  static constexpr int kRows = kRowsInFlight;
  using Items = Pack<T, kPack>;
  struct Channels {
    __device__ Channels(const MomentTerms& terms, int64_t channel, int64_t) {
      const Items items = terms.Load(channel);
#pragma unroll
      for (int j = 0; j < kPack; ++j) shift[j] = ToFloat(items.items[j]);
    }
    float shift[kPack];
  };
  __device__ Items Load(int64_t first) const { return LoadPack<T, kPack>(x, first); }
  __device__ void Add(const Items& items, const Channels& of, int64_t, float (&sums)[2 * kPack]) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float difference = ToFloat(items.items[j]) - of.shift[j];
      sums[j] += difference;
      sums[kPack + j] += difference * difference;
    }
  }
  const T* x;
};

// The moments of a channel's numbers.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;  // The sum of squared differences from the mean.
};

// Computes moments from the sums of the numbers and of their squares, both minus `shift`.
__device__ inline Moments MomentsFrom(float shift, double count, float sum, float squares) {
  const double mean = sum / count;
  const double about = squares - sum * mean;
  return {count, shift + mean, about < 0 ? 0 : about};
}

__device__ inline float InvStdFrom(const Moments& moments, double epsilon) {
  return static_cast<float>(1 / sqrt(moments.squares / moments.count + epsilon));
}

// Writes the statistics of a channel, and updates the running statistics.
__device__ inline void Follow(const Moments& moments, const BatchStatistics& statistics, int64_t channel) {
  if (statistics.mean != nullptr) {
    statistics.mean[channel] = static_cast<float>(moments.mean);
    statistics.inv_std[channel] = InvStdFrom(moments, statistics.epsilon);
  }
  float& mean = statistics.running_mean[channel];
  float& var = statistics.running_var[channel];
  if (moments.count > 0) mean = static_cast<float>(mean + statistics.momentum * (moments.mean - mean));
  if (moments.count > 1) {
    var = static_cast<float>(var + statistics.momentum * (moments.squares / (moments.count - 1) - var));
  }
}

// The source of the mask of a ReLU after the normalisation.
enum class Mask { kNone, kOutput, kRepeated };

template <typename T, int kPack, Mask kMask>
struct GradTerms {
  static constexpr int kRows = kMask == Mask::kNone ? kRowsInFlight : 2;
  struct Items {
    Pack<T, kPack> x, dy, dy2, y;
  };
  struct Channels {
    __device__ Channels(const GradTerms& terms, int64_t channel, int64_t) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        mean[j] = terms.norm.mean[channel + j];
        if (kMask != Mask::kRepeated) continue;
        factor[j] = FactorOf(terms.norm, channel + j);
        bias[j] = terms.norm.bias[channel + j];
      }
    }
    float mean[kPack], factor[kPack], bias[kPack];
  };
  __device__ Items Load(int64_t first) const {
    Items items;
    items.x = LoadPack<T, kPack>(in.x, first);
    items.dy = LoadPack<T, kPack>(in.dy, first);
    if (kMask != Mask::kNone && in.dy2 != nullptr) items.dy2 = LoadPack<T, kPack>(in.dy2, first);
    if (kMask == Mask::kOutput) items.y = LoadPack<T, kPack>(in.y, first);
    return items;
  }
  // The gradients dz, as a reader of dz finds them.
  __device__ Pack<T, kPack> Grads(const Items& items, const Channels& of) const {
    if constexpr (kMask == Mask::kNone) {
      return items.dy;
    } else {
      Pack<T, kPack> result;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float grad = ToFloat(items.dy.items[j]);
        if (in.dy2 != nullptr) grad += ToFloat(items.dy2.items[j]);
        const float y = kMask == Mask::kOutput
                            ? ToFloat(items.y.items[j])
                            : Normalized(ToFloat(items.x.items[j]), of.mean[j], of.factor[j], of.bias[j]);
        result.items[j] = To<T>(y > 0 ? grad : 0);
      }
      return result;
    }
  }
  // Adds up the gradients, and writes them if they have a reader.
  __device__ void AddGrads(const Pack<T, kPack>& x, const Pack<T, kPack>& grads, const Channels& of,
                           int64_t first, float (&sums)[2 * kPack]) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float grad = ToFloat(grads.items[j]);
      sums[j] += grad;
      sums[kPack + j] += grad * (ToFloat(x.items[j]) - of.mean[j]);
    }
    if (kMask != Mask::kNone && dz != nullptr) StorePack(grads, dz, first);
  }
  __device__ void Add(const Items& items, const Channels& of, int64_t first, float (&sums)[2 * kPack]) const {
    AddGrads(items.x, Grads(items, of), of, first, sums);
  }
  ChannelNorm norm;
  BatchNormGradIn in;
  T* dz;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_TERMS_H_
