#include "engine/backends/cuda/kernels/group_norm.h"

#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

ChannelRows RowsOf(const GroupSizes& sizes) {
  return {.rows = sizes.samples * sizes.positions, .channels = sizes.channels, .type = sizes.type};
}

// Sums of x and its square, both minus the sample's first number of the channel.
template <typename T, int kPack>
struct SampleMoments {
  static constexpr int kRows = kRowsInFlight;
  using Items = Pack<T, kPack>;
  struct Channels {
    __device__ Channels(const SampleMoments& terms, int64_t, int64_t first) : shift(terms.Load(first)) {}
    Items shift;
  };
  __device__ Items Load(int64_t first) const { return LoadPack<T, kPack>(x, first); }
  __device__ void Add(const Items& items, const Channels& of, int64_t, float (&sums)[2 * kPack]) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float difference = ToFloat(items.items[j]) - ToFloat(of.shift.items[j]);
      sums[j] += difference;
      sums[kPack + j] += difference * difference;
    }
  }
  const T* x;
};

// Sums of dy, and of dy times the normalised values.
template <typename T, int kPack>
struct SampleGrads {
  static constexpr int kRows = 2;
  struct Items {
    Pack<T, kPack> x, dy;
  };
  struct Channels {
    __device__ Channels(const SampleGrads& terms, int64_t channel, int64_t first) {
      const GroupSizes& sizes = terms.sizes;
      const int64_t sample = first / (sizes.channels * sizes.positions);
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const int64_t group = sample * sizes.groups + (channel + j) / (sizes.channels / sizes.groups);
        mean[j] = terms.in.mean[group];
        inv_std[j] = terms.in.inv_std[group];
      }
    }
    float mean[kPack], inv_std[kPack];
  };
  __device__ Items Load(int64_t first) const {
    return {LoadPack<T, kPack>(in.x, first), LoadPack<T, kPack>(in.dy, first)};
  }
  __device__ void Add(const Items& items, const Channels& of, int64_t, float (&sums)[2 * kPack]) const {
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float grad = ToFloat(items.dy.items[j]);
      sums[j] += grad;
      sums[kPack + j] += grad * (ToFloat(items.x.items[j]) - of.mean[j]) * of.inv_std[j];
    }
  }
  GroupSizes sizes;
  GroupNormGradIn in;
};

// From the sums [samples, 2, channels] of SampleMoments.
template <typename T>
void FinishMoments(const GroupSizes& sizes, const T* x, double epsilon, const float* sums, float* means,
                   float* inv_stds, Stream stream) {
  ForEach(sizes.samples * sizes.groups, stream, [=] __device__(int64_t i) {
    const int64_t sample = i / sizes.groups;
    const int64_t size = sizes.channels / sizes.groups;
    const int64_t begin = i % sizes.groups * size;
    const T* first = x + sample * sizes.positions * sizes.channels;
    const float* sum = sums + sample * 2 * sizes.channels;
    const double positions = static_cast<double>(sizes.positions);
    double mean = 0;
    for (int64_t c = begin; c < begin + size; ++c) mean += ToFloat(first[c]) + sum[c] / positions;
    mean /= static_cast<double>(size);
    double squares = 0;
    for (int64_t c = begin; c < begin + size; ++c) {
      const double own = ToFloat(first[c]) + sum[c] / positions;
      const double about = sum[sizes.channels + c] - sum[c] * (sum[c] / positions);
      squares += (about < 0 ? 0 : about) + positions * (own - mean) * (own - mean);
    }
    means[i] = static_cast<float>(mean);
    inv_stds[i] = static_cast<float>(1 / sqrt(squares / (positions * static_cast<double>(size)) + epsilon));
  });
}

// Computes for each group of each sample the means of the normalised values' gradient, and of its product
// with these values, into means [samples, groups, 2].
void FinishGroups(const GroupSizes& sizes, const float* weight, const float* sums, float* means,
                  Stream stream) {
  ForEach(sizes.samples * sizes.groups, stream, [=] __device__(int64_t i) {
    const int64_t size = sizes.channels / sizes.groups;
    const int64_t begin = i % sizes.groups * size;
    const float* sum = sums + i / sizes.groups * 2 * sizes.channels;
    float grad = 0;
    float product = 0;
    for (int64_t c = begin; c < begin + size; ++c) {
      grad += weight[c] * sum[c];
      product += weight[c] * sum[sizes.channels + c];
    }
    const float count = static_cast<float>(size * sizes.positions);
    means[2 * i] = grad / count;
    means[2 * i + 1] = product / count;
  });
}

void FinishChannels(const GroupSizes& sizes, const float* sums, float* dweight, float* dbias, Stream stream) {
  ForEach(sizes.channels, stream, [=] __device__(int64_t c) {
    double sum = 0;
    double product = 0;
    for (int64_t sample = 0; sample < sizes.samples; ++sample) {
      sum += sums[sample * 2 * sizes.channels + c];
      product += sums[(sample * 2 + 1) * sizes.channels + c];
    }
    dbias[c] = static_cast<float>(sum);
    dweight[c] = static_cast<float>(product);
  });
}

// Returns the group of channel `channel` in the sample of place `first`.
__device__ __forceinline__ int64_t GroupOf(const GroupSizes& sizes, int64_t first, int64_t channel) {
  return first / (sizes.channels * sizes.positions) * sizes.groups +
         channel / (sizes.channels / sizes.groups);
}

template <typename T, int kPack>
void Apply(Pack<T, kPack>, const GroupSizes& sizes, const void* x, const float* weight, const float* bias,
           const float* means, const float* inv_stds, void* y, Stream stream) {
  const int64_t packs = sizes.samples * sizes.positions * sizes.channels / kPack;
  ForEach(packs, stream, [=] __device__(int64_t i) {
    const int64_t first = i * kPack;
    Pack<T, kPack> items = LoadPack<T, kPack>(x, first);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const int64_t channel = first % sizes.channels + j;
      const int64_t group = GroupOf(sizes, first, channel);
      items.items[j] = To<T>(
          fmaf(ToFloat(items.items[j]) - means[group], weight[channel] * inv_stds[group], bias[channel]));
    }
    StorePack(items, y, first);
  });
}

template <typename T, int kPack>
void ApplyGrad(Pack<T, kPack>, const GroupSizes& sizes, const GroupNormGradIn& in, const float* means,
               void* dx, Stream stream) {
  const int64_t packs = sizes.samples * sizes.positions * sizes.channels / kPack;
  ForEach(packs, stream, [=] __device__(int64_t i) {
    const int64_t first = i * kPack;
    Pack<T, kPack> items = LoadPack<T, kPack>(in.x, first);
    const Pack<T, kPack> grads = LoadPack<T, kPack>(in.dy, first);
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const int64_t channel = first % sizes.channels + j;
      const int64_t group = GroupOf(sizes, first, channel);
      const float inv_std = in.inv_std[group];
      const float normal = (ToFloat(items.items[j]) - in.mean[group]) * inv_std;
      items.items[j] = To<T>(inv_std * (in.weight[channel] * ToFloat(grads.items[j]) - means[2 * group] -
                                        normal * means[2 * group + 1]));
    }
    StorePack(items, dx, first);
  });
}

template <typename T, int kPack>
void Run(Pack<T, kPack> pack, const GroupSizes& sizes, const void* x, const float* weight, const float* bias,
         double epsilon, float* scratch, void* y, float* mean, float* inv_std, Stream stream) {
  const SampleMoments<T, kPack> terms = {static_cast<const T*>(x)};
  RunPieceSums<kPack>(RowsOf(sizes), sizes.positions, terms, scratch, stream);
  FinishMoments(sizes, terms.x, epsilon, scratch, mean, inv_std, stream);
  Apply(pack, sizes, x, weight, bias, mean, inv_std, y, stream);
}

template <typename T, int kPack>
void RunGrad(Pack<T, kPack> pack, const GroupSizes& sizes, const GroupNormGradIn& in, float* scratch,
             void* dx, float* dweight, float* dbias, Stream stream) {
  RunPieceSums<kPack>(RowsOf(sizes), sizes.positions, SampleGrads<T, kPack>{sizes, in}, scratch, stream);
  float* means = scratch + sizes.samples * 2 * sizes.channels;
  FinishGroups(sizes, in.weight, scratch, means, stream);
  FinishChannels(sizes, scratch, dweight, dbias, stream);
  ApplyGrad(pack, sizes, in, means, dx, stream);
}

}  // namespace

int64_t GroupScratchBytes(const GroupSizes& sizes) {
  return static_cast<int64_t>(sizeof(float)) * 2 * sizes.samples * (sizes.channels + sizes.groups);
}

void GroupNorm(const GroupSizes& sizes, const void* x, const float* weight, const float* bias, double epsilon,
               float* scratch, void* y, float* mean, float* inv_std, Stream stream) {
  WithPackOf(RowsOf(sizes), [&](auto pack) {
    Run(pack, sizes, x, weight, bias, epsilon, scratch, y, mean, inv_std, stream);
  });
}

void GroupNormGrad(const GroupSizes& sizes, const GroupNormGradIn& in, float* scratch, void* dx,
                   float* dweight, float* dbias, Stream stream) {
  WithPackOf(RowsOf(sizes),
             [&](auto pack) { RunGrad(pack, sizes, in, scratch, dx, dweight, dbias, stream); });
}

}  // namespace tandem::cuda
