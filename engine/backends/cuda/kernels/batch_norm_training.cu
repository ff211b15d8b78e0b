#include "engine/backends/cuda/kernels/batch_norm.h"
#include "engine/backends/cuda/kernels/batch_norm_terms.h"
#include "engine/backends/cuda/kernels/channel_sums.h"
#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

// A training batch normalisation needs its rows twice: for the sums, then for the results. A single kernel
// does both. Its blocks run at the same time. They keep as many of their rows in shared memory as fit, and
// read the others again.

namespace tandem::cuda {
namespace {

// The shared memory of a block besides its rows: for SumRows, and a few numbers for each channel.
template <int kPack>
inline constexpr int kOtherSharedBytes = 2 * kPack* kSumThreads * sizeof(float) + 1024;

// Waits until all blocks with the same blockIdx.y are here. tickets[0] counts the blocks, tickets[1] the
// meetings.
__device__ void MeetBlocks(unsigned* tickets) {
  volatile unsigned* meetings = tickets + 1;
  unsigned meeting = 0;
  // Read before the fence: after this block has its ticket, the meeting may end at any time.
  if (threadIdx.x == 0) meeting = *meetings;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (atomicAdd(tickets, 1u) == gridDim.x - 1) {
      tickets[0] = 0;
      __threadfence();
      *meetings = meeting + 1;
    } else {
      while (*meetings == meeting) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// Adds up the threads' sums over all rows. The result is like that of SumRows.
template <int kPack>
__device__ const float* SumBlocks(const float (&sums)[2 * kPack], const ShareOf<kPack>& share,
                                  const Division& division, int64_t channels, const SumScratch& scratch) {
  const float* all = SumRows(sums, division, share.row);
  if (gridDim.x == 1) return all;
  WritePartials(all, share, division, channels, scratch.partials);
  MeetBlocks(scratch.tickets + kTicketsOfTile * (division.first_tile + blockIdx.y));
  return AddPartials(share, division, channels, scratch.partials);
}

// The rows of a thread. The first of them are in shared memory.
template <typename T, int kPack>
struct ThreadRows {
  __device__ ThreadRows(const ShareOf<kPack>& share, const Division& division, int64_t channels, int held)
      : count(share.works && share.begin + share.row < share.end
                  ? static_cast<int>((share.end - 1 - share.begin - share.row) / division.rows) + 1
                  : 0),
        held(held),
        first((share.begin + share.row) * channels + share.channel),
        step(division.rows * channels),
        kept(reinterpret_cast<Pack<T, kPack>*>(DynamicShared()) + threadIdx.x) {}

  // Returns the place of row i in a tensor.
  __device__ int64_t At(int i) const { return first + i * step; }
  // Returns the place of row i < held of the tensor `which` in shared memory.
  __device__ Pack<T, kPack>& Kept(int i, int which = 0) const {
    return kept[(which * held + i) * static_cast<int>(blockDim.x)];
  }

  int count;
  int held;
  int64_t first;
  int64_t step;
  Pack<T, kPack>* kept;
};

template <typename T, int kPack>
TANDEM_KERNEL __launch_bounds__(kSumThreads)
    TrainKernel(int64_t rows, int64_t channels, Division division, int held, SumScratch scratch,
                BatchStatistics statistics, const float* weight, const float* bias, const T* x,
                const T* addend, bool relu, T* y) {
  constexpr int kRows = kRowsInFlight;
  constexpr int kChannels = kSumTilePacks * kPack;
  __shared__ float shifts[kChannels], means[kChannels], inv_stds[kChannels];
  const ShareOf<kPack> share(division, blockIdx.x, division.first_tile + blockIdx.y, rows, channels);
  const ThreadRows<T, kPack> own(share, division, channels, held);

  float sums[2 * kPack] = {};
  if (share.works) {
    const MomentTerms<T, kPack> terms = {x};
    const typename MomentTerms<T, kPack>::Channels of(terms, share.channel, 0);
    if (share.row == 0) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) shifts[share.column * kPack + j] = of.shift[j];
    }
    for (int first = 0; first < own.count; first += kRows) {
      Pack<T, kPack> items[kRows];
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (first + i < own.count) items[i] = terms.Load(own.At(first + i));
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        if (first + i >= own.count) continue;
        terms.Add(items[i], of, 0, sums);
        if (first + i < held) own.Kept(first + i) = items[i];
      }
    }
  }
  // From here on other blocks may write y, which may be x.
  const float* all = SumBlocks(sums, share, division, channels, scratch);
  const int width = division.tile * kPack;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    const int64_t channel = share.first + i;
    if (channel >= channels) continue;
    const float* sum = all + i % kPack * kSumThreads + i / kPack;
    const Moments moments =
        MomentsFrom(shifts[i], static_cast<double>(rows), sum[0], sum[kPack * kSumThreads]);
    means[i] = static_cast<float>(moments.mean);
    inv_stds[i] = InvStdFrom(moments, statistics.epsilon);
    if (blockIdx.x == 0) Follow(moments, statistics, channel);
  }
  __syncthreads();
  if (!share.works) return;

  float mean[kPack], factor[kPack], offset[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    mean[j] = means[share.column * kPack + j];
    factor[j] = weight[share.channel + j] * inv_stds[share.column * kPack + j];
    offset[j] = bias[share.channel + j];
  }
  // From the last row backwards: rows that are not kept were read last, and are still in the cache.
  for (int last = own.count - 1; last >= 0; last -= kRows) {
    Pack<T, kPack> items[kRows];
    Pack<T, kPack> others[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (last - i < 0) continue;
      items[i] = last - i < held ? own.Kept(last - i) : LoadPack<T, kPack>(x, own.At(last - i));
      if (addend != nullptr) others[i] = LoadPack<T, kPack>(addend, own.At(last - i));
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (last - i < 0) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        float number = Normalized(ToFloat(items[i].items[j]), mean[j], factor[j], offset[j]);
        if (addend != nullptr) number += ToFloat(others[i].items[j]);
        if (relu && number < 0) number = 0;
        items[i].items[j] = To<T>(number);
      }
      StorePack(items[i], y, own.At(last - i));
    }
  }
}

template <typename T, int kPack, Mask kMask>
TANDEM_KERNEL __launch_bounds__(kSumThreads)
    TrainGradKernel(int64_t rows, int64_t channels, Division division, int held, SumScratch scratch,
                    GradTerms<T, kPack, kMask> terms, float* dweight, float* dbias, T* dx) {
  using Terms = GradTerms<T, kPack, kMask>;
  constexpr int kRows = Terms::kRows;
  const ShareOf<kPack> share(division, blockIdx.x, division.first_tile + blockIdx.y, rows, channels);
  const ThreadRows<T, kPack> own(share, division, channels, held);
  // Threads without work need no channel.
  const int64_t channel = share.works ? share.channel : 0;
  const typename Terms::Channels of(terms, channel, 0);

  float sums[2 * kPack] = {};
  for (int first = 0; first < own.count; first += kRows) {
    typename Terms::Items items[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first + i < own.count) items[i] = terms.Load(own.At(first + i));
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (first + i >= own.count) continue;
      const Pack<T, kPack> grads = terms.Grads(items[i], of);
      terms.AddGrads(items[i].x, grads, of, own.At(first + i), sums);
      if (first + i < held) {
        own.Kept(first + i, 0) = items[i].x;
        own.Kept(first + i, 1) = grads;
      }
    }
  }
  const float* all = SumBlocks(sums, share, division, channels, scratch);
  if (!share.works) return;

  float factor[kPack], slope[kPack], offset[kPack];
#pragma unroll
  for (int j = 0; j < kPack; ++j) {
    const float* sum = all + j * kSumThreads + share.column;
    const float inv_std = InvStdOf(terms.norm, channel + j);
    const float product = sum[kPack * kSumThreads] * inv_std;
    factor[j] = terms.norm.weight[channel + j] * inv_std;
    const float share_of_row = -factor[j] / static_cast<float>(rows);
    slope[j] = share_of_row * inv_std * product;
    offset[j] = share_of_row * sum[0];
    if (share.row == 0 && blockIdx.x == 0) {
      dweight[channel + j] = product;
      dbias[channel + j] = sum[0];
    }
  }
  for (int last = own.count - 1; last >= 0; last -= kRows) {
    Pack<T, kPack> items[kRows];
    Pack<T, kPack> grads[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (last - i < 0) continue;
      if (last - i < held) {
        items[i] = own.Kept(last - i, 0);
        grads[i] = own.Kept(last - i, 1);
      } else if (kMask != Mask::kNone && terms.dz != nullptr) {
        // dz may be in the memory of its inputs.
        items[i] = LoadPack<T, kPack>(terms.in.x, own.At(last - i));
        grads[i] = LoadPack<T, kPack>(terms.dz, own.At(last - i));
      } else {
        const typename Terms::Items again = terms.Load(own.At(last - i));
        items[i] = again.x;
        grads[i] = terms.Grads(again, of);
      }
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (last - i < 0) continue;
#pragma unroll
      for (int j = 0; j < kPack; ++j) {
        const float number = ToFloat(items[i].items[j]);
        const float grad = ToFloat(grads[i].items[j]);
        items[i].items[j] = To<T>(fmaf(factor[j], grad, fmaf(slope[j], number - of.mean[j], offset[j])));
      }
      StorePack(items[i], dx, own.At(last - i));
    }
  }
}

// Calls `launch(division, held rows, bytes)` for each launch. A thread's row takes `row_bytes`.
template <int kPack, typename Function>
void ForTogether(const ChannelRows& sizes, int row_bytes, const Function& launch) {
  const int threads = Threads(kSumThreads);
  const int together = BlocksTogether(sizes.multiprocessors);
  const Division whole = Divide(sizes.rows, sizes.channels, kPack, threads, together, kSumTilePacks);
  const int64_t room = (MostSharedBytes() - kOtherSharedBytes<kPack>) / (threads * row_bytes);
  const int64_t rows = (whole.piece + whole.rows - 1) / whole.rows;
  const int held = static_cast<int>(std::clamp<int64_t>(room, 0, rows));
  ForTiles(whole, std::min<uint64_t>(together, MostBlocks()),
           [&](const Division& division) { launch(division, held, held * threads * row_bytes); });
}

template <typename T, int kPack>
void RunTrain(Pack<T, kPack>, const ChannelRows& sizes, const BatchNormIn& in, const SumScratch& scratch,
              const BatchStatistics& statistics, void* y, Stream stream) {
  ForTogether<kPack>(sizes, sizeof(Pack<T, kPack>), [&](const Division& division, int held, int bytes) {
    LaunchTogether(TrainKernel<T, kPack>, division.grid, Threads(kSumThreads), bytes, stream, sizes.rows,
                   sizes.channels, division, held, scratch, statistics, in.weight, in.bias,
                   static_cast<const T*>(in.x), static_cast<const T*>(in.addend), in.relu,
                   static_cast<T*>(y));
  });
}

template <Mask kMask, typename T, int kPack>
void RunTrainGrad(Pack<T, kPack>, const ChannelRows& sizes, const ChannelNorm& norm,
                  const BatchNormGradIn& in, const SumScratch& scratch, float* dweight, float* dbias,
                  void* dz, void* dx, Stream stream) {
  const GradTerms<T, kPack, kMask> terms = {norm, in, static_cast<T*>(dz)};
  ForTogether<kPack>(sizes, 2 * sizeof(Pack<T, kPack>), [&](const Division& division, int held, int bytes) {
    LaunchTogether(TrainGradKernel<T, kPack, kMask>, division.grid, Threads(kSumThreads), bytes, stream,
                   sizes.rows, sizes.channels, division, held, scratch, terms, dweight, dbias,
                   static_cast<T*>(dx));
  });
}

}  // namespace

void BatchNormTrain(const ChannelRows& sizes, const BatchNormIn& in, const SumScratch& scratch,
                    const BatchStatistics& statistics, void* y, Stream stream) {
  WithPackOf(sizes, [&](auto pack) { RunTrain(pack, sizes, in, scratch, statistics, y, stream); });
}

void BatchNormTrainGrad(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                        const SumScratch& scratch, float* dweight, float* dbias, void* dz, void* dx,
                        Stream stream) {
  WithPackOf(sizes, [&](auto pack) {
    if (!in.relu) {
      RunTrainGrad<Mask::kNone>(pack, sizes, norm, in, scratch, dweight, dbias, dz, dx, stream);
    } else if (in.y != nullptr) {
      RunTrainGrad<Mask::kOutput>(pack, sizes, norm, in, scratch, dweight, dbias, dz, dx, stream);
    } else {
      RunTrainGrad<Mask::kRepeated>(pack, sizes, norm, in, scratch, dweight, dbias, dz, dx, stream);
    }
  });
}

}  // namespace tandem::cuda
