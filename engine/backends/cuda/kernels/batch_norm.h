#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/channel_rows.h"

namespace tandem::cuda {

// A normalisation's numbers, one a channel.
struct ChannelNorm {
  const float* mean = nullptr;
  // 1 / standard deviation where epsilon is negative, else the variance that epsilon is added to.
  const float* deviation = nullptr;
  float epsilon = -1;
  const float* weight = nullptr;
  const float* bias = nullptr;  // Gradients read it where they repeat a ReLU.
};

// Statistics of a normalisation that trains, and the running ones, which follow. mean and inv_std may be
// null.
struct BatchStatistics {
  double momentum = 0;
  double epsilon = 0;
  float* mean = nullptr;
  float* inv_std = nullptr;
  float* running_mean = nullptr;
  float* running_var = nullptr;
};

// What a normalisation reads. The addend may be null.
struct BatchNormIn {
  const void* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const void* addend = nullptr;
  bool relu = false;
};
// The statistics of x, and with these y as BatchNormApply writes it. y may be x or the addend.
void BatchNormTrain(const ChannelRows& sizes, const BatchNormIn& in, const SumScratch& scratch,
                    const BatchStatistics& statistics, void* y, Stream stream);

// row [2 channels + 1]: the number of rows, the means, and the sums of squares about these.
void BatchNormMoments(const ChannelRows& sizes, const void* x, const SumScratch& scratch, float* row,
                      Stream stream);

// The statistics of all replicas' samples, from moments [replicas, 2 channels + 1].
void BatchNormMerge(int64_t replicas, int64_t channels, const float* moments,
                    const BatchStatistics& statistics, Stream stream);

// y = weight (x - mean) / deviation + bias + addend, where it is not null, and 0 where that is below 0 and
// `relu`. y may be x or the addend.
void BatchNormApply(const ChannelRows& sizes, const ChannelNorm& norm, const void* x, const void* addend,
                    bool relu, void* y, Stream stream);

// The gradient dz that reaches a normalisation: dy, or with a second one dy + dy2, where a ReLU behind it
// let x pass. Whether it did is said by its output y, or where that is null by the normalisation itself.
struct BatchNormGradIn {
  const void* x = nullptr;
  const void* dy = nullptr;
  const void* dy2 = nullptr;
  bool relu = false;
  const void* y = nullptr;
};
// dweight = the sums of dz (x - mean) / deviation, dbias = the sums of dz. dz is written where it is not
// null; it may be dy, dy2 or y. Without a ReLU there is neither dy2 nor dz.
void BatchNormGradSums(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                       const SumScratch& scratch, float* dweight, float* dbias, void* dz, Stream stream);
// dx = weight / deviation (dz - (dbias + (x - mean) / deviation dweight) / rows), where dweight is null
// without what is subtracted. A ReLU is repeated: there is neither dy2 nor y. dx may be x or dy.
void BatchNormGradApply(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                        const float* dweight, const float* dbias, void* dx, Stream stream);

// What BatchNormGradSums and then BatchNormGradApply write. dz may be null with a ReLU too. dx may be any of
// what is read, but not dz.
void BatchNormTrainGrad(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                        const SumScratch& scratch, float* dweight, float* dbias, void* dz, void* dx,
                        Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_H_
