#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/channel_rows.h"

namespace tandem::cuda {

// A normalisation's numbers, with an entry for each channel.
struct ChannelNorm {
  const float* mean = nullptr;
  // 1 / standard deviation if epsilon is negative, else the variance to which epsilon is added.
  const float* deviation = nullptr;
  float epsilon = -1;
  const float* weight = nullptr;
  const float* bias = nullptr;  // Gradients read it to repeat a ReLU.
};

// Statistics of a training normalisation, and the running statistics that follow them. mean and inv_std may
// be null.
struct BatchStatistics {
  double momentum = 0;
  double epsilon = 0;
  float* mean = nullptr;
  float* inv_std = nullptr;
  float* running_mean = nullptr;
  float* running_var = nullptr;
};

// The inputs of a normalisation. The addend may be null.
struct BatchNormIn {
  const void* x = nullptr;
  const float* weight = nullptr;
  const float* bias = nullptr;
  const void* addend = nullptr;
  bool relu = false;
};
// Computes the statistics of x, then y as BatchNormApply. y may be x or the addend.
void BatchNormTrain(const ChannelRows& sizes, const BatchNormIn& in, const SumScratch& scratch,
                    const BatchStatistics& statistics, void* y, Stream stream);

// row [2 channels + 1]: the number of rows, the means, and the sums of squared differences from them.
void BatchNormMoments(const ChannelRows& sizes, const void* x, const SumScratch& scratch, float* row,
                      Stream stream);

// Computes the statistics of all replicas' samples from moments [replicas, 2 channels + 1].
void BatchNormMerge(int64_t replicas, int64_t channels, const float* moments,
                    const BatchStatistics& statistics, Stream stream);

// y = weight (x - mean) / deviation + bias + addend (if not null), then max(0, y) if `relu`. y may be x or
// the addend.
void BatchNormApply(const ChannelRows& sizes, const ChannelNorm& norm, const void* x, const void* addend,
                    bool relu, void* y, Stream stream);

// The gradient dz at a normalisation's output: dy, or dy + dy2 if dy2 is not null. If `relu`, dz is 0 where
// the ReLU after the normalisation was 0. The ReLU's output is y. If y is null, the kernel computes the
// normalisation again.
struct BatchNormGradIn {
  const void* x = nullptr;
  const void* dy = nullptr;
  const void* dy2 = nullptr;
  bool relu = false;
  const void* y = nullptr;
};
// dweight = the sums of dz (x - mean) / deviation, dbias = the sums of dz. Writes dz if it is not null. dz
// may be dy, dy2 or y. Without a ReLU, dy2 and dz must be null.
void BatchNormGradSums(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                       const SumScratch& scratch, float* dweight, float* dbias, void* dz, Stream stream);
// dx = weight / deviation (dz - (dbias + (x - mean) / deviation dweight) / rows), or weight / deviation dz if
// dweight is null. dy2 and y must be null: with `relu`, the kernel computes the normalisation again. dx may
// be x or dy.
void BatchNormGradApply(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                        const float* dweight, const float* dbias, void* dx, Stream stream);

// Computes BatchNormGradSums, then BatchNormGradApply. dz may be null even with a ReLU. dx may be any input,
// but not dz.
void BatchNormTrainGrad(const ChannelRows& sizes, const ChannelNorm& norm, const BatchNormGradIn& in,
                        const SumScratch& scratch, float* dweight, float* dbias, void* dz, void* dx,
                        Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_BATCH_NORM_H_
