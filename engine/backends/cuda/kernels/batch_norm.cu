#include "engine/backends/cuda/kernels/batch_norm.h"

#include "engine/backends/cuda/kernels/batch_norm_terms.h"
#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// Blocks for each multiprocessor.
constexpr int kApplyThreads = 256;
constexpr int kApplyBlocks = 4;

template <typename T>
struct FinishMoments {
  __device__ void operator()(int64_t channel, float sum, float squares) const {
    const Moments moments = MomentsFrom(ToFloat(x[channel]), count, sum, squares);
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
  // From the last row backwards: the last rows were read last for the sums, and are still in the cache.
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
void RunMoments(Pack<T, kPack>, const ChannelRows& sizes, const void* x, const SumScratch& scratch,
                float* row, Stream stream) {
  const MomentTerms<T, kPack> terms = {static_cast<const T*>(x)};
  const FinishMoments<T> finish = {terms.x, static_cast<double>(sizes.rows), sizes.channels, row};
  RunSums<kPack>(sizes, terms, scratch, finish, stream);
}

template <typename T, int kPack>
void RunApply(Pack<T, kPack>, const ChannelRows& sizes, const ChannelNorm& norm, const void* x,
              const void* addend, bool relu, void* y, Stream stream) {
  ForTiles(DivideApply(sizes, kPack), MostBlocks(), [&](const Division& division) {
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
  ForTiles(DivideApply(sizes, kPack), MostBlocks(), [&](const Division& division) {
    Launch(GradKernel<T, kPack, kRepeated>, division.grid, Threads(kApplyThreads), stream, sizes.rows,
           sizes.channels, division, norm, static_cast<const T*>(in.x), static_cast<const T*>(in.dy), dweight,
           dbias, static_cast<T*>(dx));
  });
}

}  // namespace

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
