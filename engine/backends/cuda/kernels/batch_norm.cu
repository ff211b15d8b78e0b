#include "engine/backends/cuda/kernels/batch_norm.h"

#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// Blocks a multiprocessor.
constexpr int kApplyThreads = 256;
constexpr int kApplyBlocks = 4;

__device__ __forceinline__ float InvStdOf(const ChannelNorm& norm, int64_t channel) {
  const float deviation = norm.deviation[channel];
  return norm.epsilon < 0 ? deviation : 1.0f / sqrtf(deviation + norm.epsilon);
}
__device__ __forceinline__ float FactorOf(const ChannelNorm& norm, int64_t channel) {
  return norm.weight[channel] * InvStdOf(norm, channel);
}
// The normalised number, in both passes of a network to the last bit.
__device__ __forceinline__ float Normalized(float x, float mean, float factor, float bias) {
  return fmaf(x - mean, factor, bias);
}

// Of x and its square, both less the channel's first number so that large means cost no digits.
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

// What is known of a channel's numbers.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;  // The sum of the squares about the mean.
};

template <typename T>
__device__ Moments MomentsFrom(const T* x, int64_t channel, double count, float sum, float squares) {
  const double mean = sum / count;
  const double about = squares - sum * mean;
  return {count, ToFloat(x[channel]) + mean, about < 0 ? 0 : about};
}

__device__ void Follow(const Moments& moments, const BatchStatistics& statistics, int64_t channel) {
  if (statistics.mean != nullptr) {
    statistics.mean[channel] = static_cast<float>(moments.mean);
    statistics.inv_std[channel] =
        static_cast<float>(1 / sqrt(moments.squares / moments.count + statistics.epsilon));
  }
  float& mean = statistics.running_mean[channel];
  float& var = statistics.running_var[channel];
  if (moments.count > 0) mean = static_cast<float>(mean + statistics.momentum * (moments.mean - mean));
  if (moments.count > 1) {
    var = static_cast<float>(var + statistics.momentum * (moments.squares / (moments.count - 1) - var));
  }
}

template <typename T>
struct FinishStatistics {
  __device__ void operator()(int64_t channel, float sum, float squares) const {
    Follow(MomentsFrom(x, channel, count, sum, squares), statistics, channel);
  }
  const T* x;
  double count;
  BatchStatistics statistics;
};

template <typename T>
struct FinishMoments {
  __device__ void operator()(int64_t channel, float sum, float squares) const {
    const Moments moments = MomentsFrom(x, channel, count, sum, squares);
    const float mean = static_cast<float>(moments.mean);
    const double rest = moments.mean - mean;
    if (channel == 0) row[0] = static_cast<float>(count);
    row[1 + channel] = mean;
    row[1 + channels + channel] = static_cast<float>(moments.squares + count * rest * rest);
  }
  const T* x;
  double count;
  int64_t channels;
  float* row;
};

// Chan et al. 1979, in the order of the replicas.
__device__ Moments Merge(int64_t replicas, int64_t channels, const float* moments, int64_t channel) {
  Moments all;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    const float* own = moments + replica * (2 * channels + 1);
    const double more = own[0];
    if (more == 0) continue;
    const double count = all.count + more;
    const double difference = own[1 + channel] - all.mean;
    all.mean += difference * more / count;
    all.squares += own[1 + channels + channel] + difference * difference * all.count * more / count;
    all.count = count;
  }
  return all;
}

template <typename T, int kPack>
TANDEM_KERNEL __launch_bounds__(kApplyThreads)
    ApplyKernel(int64_t rows, int64_t channels, Division division, ChannelNorm norm, const T* x,
                const T* addend, bool relu, T* y) {
  const ShareOf<kPack> share(division, blockIdx.x, division.first_tile + blockIdx.y, rows, channels);
  if (!share.works) return;
  float mean[kPack], factor[kPack], bias[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    mean[j] = norm.mean[share.channel + j];
    factor[j] = FactorOf(norm, share.channel + j);
    bias[j] = norm.bias[share.channel + j];
  }
  // From the last row back: those were read last when sums were taken, and are near still.
  for (int64_t row = share.end - 1 - share.row; row >= share.begin; row -= kRowsInFlight * division.rows) {
    Pack<T, kPack> items[kRowsInFlight];
    Pack<T, kPack> others[kRowsInFlight];
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      const int64_t at = row - i * division.rows;
      if (at < share.begin) continue;
      items[i] = LoadPack<T, kPack>(x, at * channels + share.channel);
      if (addend != nullptr) others[i] = LoadPack<T, kPack>(addend, at * channels + share.channel);
    }
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      const int64_t at = row - i * division.rows;
      if (at < share.begin) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float number = Normalized(ToFloat(items[i].items[j]), mean[j], factor[j], bias[j]);
        if (addend != nullptr) number += ToFloat(others[i].items[j]);
        if (relu && number < 0) number = 0;
        items[i].items[j] = To<T>(number);
      }
      StorePack(items[i], y, at * channels + share.channel);
    }
  }
}

// How it is known what a ReLU behind the normalisation let pass.
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
  __device__ void Add(const Items& items, const Channels& of, int64_t first, float (&sums)[2 * kPack]) const {
    Pack<T, kPack> result;
#pragma unroll
    for (int j = 0; j < kPack; ++j) {
      const float x = ToFloat(items.x.items[j]);
      float grad = ToFloat(items.dy.items[j]);
      if (kMask != Mask::kNone) {
        if (in.dy2 != nullptr) grad += ToFloat(items.dy2.items[j]);
        const float y = kMask == Mask::kOutput ? ToFloat(items.y.items[j])
                                               : Normalized(x, of.mean[j], of.factor[j], of.bias[j]);
        if (!(y > 0)) grad = 0;
        // What is added up is what will be read.
        result.items[j] = To<T>(grad);
        grad = ToFloat(result.items[j]);
      }
      sums[j] += grad;
      sums[kPack + j] += grad * (x - of.mean[j]);
    }
    if (kMask != Mask::kNone && dz != nullptr) StorePack(result, dz, first);
  }
  ChannelNorm norm;
  BatchNormGradIn in;
  T* dz;
};

struct FinishGrad {
  __device__ void operator()(int64_t channel, float sum, float product) const {
    dbias[channel] = sum;
    dweight[channel] = product * InvStdOf(norm, channel);
  }
  ChannelNorm norm;
  float* dweight;
  float* dbias;
};

template <typename T, int kPack, bool kRepeated>
TANDEM_KERNEL __launch_bounds__(kApplyThreads)
    GradKernel(int64_t rows, int64_t channels, Division division, ChannelNorm norm, const T* x, const T* dy,
               const float* dweight, const float* dbias, T* dx) {
  const ShareOf<kPack> share(division, blockIdx.x, division.first_tile + blockIdx.y, rows, channels);
  if (!share.works) return;
  float mean[kPack], factor[kPack], slope[kPack], offset[kPack], bias[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    const int64_t channel = share.channel + j;
    mean[j] = norm.mean[channel];
    const float inv_std = InvStdOf(norm, channel);
    factor[j] = norm.weight[channel] * inv_std;
    slope[j] = offset[j] = 0;
    if (dweight != nullptr) {
      const float share_of_row = -factor[j] / static_cast<float>(rows);
      slope[j] = share_of_row * inv_std * dweight[channel];
      offset[j] = share_of_row * dbias[channel];
    }
    if (kRepeated) bias[j] = norm.bias[channel];
  }
  for (int64_t row = share.end - 1 - share.row; row >= share.begin; row -= kRowsInFlight * division.rows) {
    Pack<T, kPack> items[kRowsInFlight];
    Pack<T, kPack> grads[kRowsInFlight];
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      const int64_t at = row - i * division.rows;
      if (at < share.begin) continue;
      items[i] = LoadPack<T, kPack>(x, at * channels + share.channel);
      grads[i] = LoadPack<T, kPack>(dy, at * channels + share.channel);
    }
#pragma unroll
    for (int i = 0; i < kRowsInFlight; ++i) {
      const int64_t at = row - i * division.rows;
      if (at < share.begin) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float number = ToFloat(items[i].items[j]);
        float grad = ToFloat(grads[i].items[j]);
        if (kRepeated && !(Normalized(number, mean[j], factor[j], bias[j]) > 0)) grad = 0;
        items[i].items[j] = To<T>(fmaf(factor[j], grad, fmaf(slope[j], number - mean[j], offset[j])));
      }
      StorePack(items[i], dx, at * channels + share.channel);
    }
  }
}

Division DivideApply(const ChannelRows& sizes, int pack) {
  return Divide(sizes.rows, sizes.channels, pack, Threads(kApplyThreads),
                kApplyBlocks * sizes.multiprocessors);
}

template <typename T, int kPack>
void RunStatistics(Pack<T, kPack>, const ChannelRows& sizes, const void* x, const SumScratch& scratch,
                   const BatchStatistics& statistics, Stream stream) {
  const MomentTerms<T, kPack> terms = {static_cast<const T*>(x)};
  const FinishStatistics<T> finish = {terms.x, static_cast<double>(sizes.rows), statistics};
  RunSums<kPack>(sizes, terms, scratch, finish, stream);
}

template <typename T, int kPack>
void RunMoments(Pack<T, kPack>, const ChannelRows& sizes, const void* x, const SumScratch& scratch,
                float* row, Stream stream) {
  const MomentTerms<T, kPack> terms = {static_cast<const T*>(x)};
  const FinishMoments<T> finish = {terms.x, static_cast<double>(sizes.rows), sizes.channels, row};
  RunSums<kPack>(sizes, terms, scratch, finish, stream);
}

template <typename T, int kPack>
void RunApply(Pack<T, kPack>, const ChannelRows& sizes, const ChannelNorm& norm, const void* x,
              const void* addend, bool relu, void* y, Stream stream) {
  ForTiles(DivideApply(sizes, kPack), [&](const Division& division) {
    Launch(ApplyKernel<T, kPack>, division.grid, Threads(kApplyThreads), stream, sizes.rows, sizes.channels,
           division, norm, static_cast<const T*>(x), static_cast<const T*>(addend), relu, static_cast<T*>(y));
  });
}

template <Mask kMask, typename T, int kPack>
void RunGradSums(Pack<T, kPack>, const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                 const SumScratch& scratch, const FinishGrad& finish, void* dz, Stream stream) {
  const GradTerms<T, kPack, kMask> terms = {norm, in, static_cast<T*>(dz)};
  RunSums<kPack>(sizes, terms, scratch, finish, stream);
}

template <bool kRepeated, typename T, int kPack>
void RunGrad(Pack<T, kPack>, const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
             const float* dweight, const float* dbias, void* dx, Stream stream) {
  ForTiles(DivideApply(sizes, kPack), [&](const Division& division) {
    Launch(GradKernel<T, kPack, kRepeated>, division.grid, Threads(kApplyThreads), stream, sizes.rows,
           sizes.channels, division, norm, static_cast<const T*>(in.x), static_cast<const T*>(in.dy), dweight,
           dbias, static_cast<T*>(dx));
  });
}

}  // namespace

void BatchNormStatistics(const ChannelRows& sizes, const void* x, const SumScratch& scratch,
                         const BatchStatistics& statistics, Stream stream) {
  WithPackOf(sizes, [&](auto pack) { RunStatistics(pack, sizes, x, scratch, statistics, stream); });
}

void BatchNormMoments(const ChannelRows& sizes, const void* x, const SumScratch& scratch, float* row,
                      Stream stream) {
  WithPackOf(sizes, [&](auto pack) { RunMoments(pack, sizes, x, scratch, row, stream); });
}

void BatchNormMerge(int64_t replicas, int64_t channels, const float* moments,
                    const BatchStatistics& statistics, Stream stream) {
  ForEach(channels, stream, [=] __device__(int64_t channel) {
    Follow(Merge(replicas, channels, moments, channel), statistics, channel);
  });
}

void BatchNormApply(const ChannelRows& sizes, const ChannelNorm& norm, const void* x, const void* addend,
                    bool relu, void* y, Stream stream) {
  WithPackOf(sizes, [&](auto pack) { RunApply(pack, sizes, norm, x, addend, relu, y, stream); });
}

void BatchNormGradSums(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                       const SumScratch& scratch, float* dweight, float* dbias, void* dz, Stream stream) {
  const FinishGrad finish = {norm, dweight, dbias};
  WithPackOf(sizes, [&](auto pack) {
    if (!in.relu) {
      RunGradSums<Mask::kNone>(pack, sizes, norm, in, scratch, finish, dz, stream);
    } else if (in.y != nullptr) {
      RunGradSums<Mask::kOutput>(pack, sizes, norm, in, scratch, finish, dz, stream);
    } else {
      RunGradSums<Mask::kRepeated>(pack, sizes, norm, in, scratch, finish, dz, stream);
    }
  });
}

void BatchNormGradApply(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                        const float* dweight, const float* dbias, void* dx, Stream stream) {
  WithPackOf(sizes, [&](auto pack) {
    if (in.relu) {
      RunGrad<true>(pack, sizes, norm, in, dweight, dbias, dx, stream);
    } else {
      RunGrad<false>(pack, sizes, norm, in, dweight, dbias, dx, stream);
    }
  });
}

}  // namespace tandem::cuda
