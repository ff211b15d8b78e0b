#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLASSIFICATION_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLASSIFICATION_H_

#include <cstdint>
#include <limits>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/meter.h"
#include "engine/backends/cuda/kernels/row_sums.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// Kernels on rows of scores [rows, classes] of `type`: float32, bfloat16 or float16. `sums` is memory of
// kRowSumBytes.

// A class that is no row's target.
inline constexpr int64_t kNoClass = std::numeric_limits<int64_t>::min();

struct CrossEntropy {
  int64_t rows = 0;
  int64_t classes = 0;
  DType type = DType::kFloat32;
  const void* logits = nullptr;
  const int32_t* labels = nullptr;
  float* loss = nullptr;           // The mean.
  float* probabilities = nullptr;  // May be null.
  // In the type of the logits, which it may overwrite. May be null.
  void* grad = nullptr;
  const float* grad_loss = nullptr;  // With `grad`.
  // The number of rows whose class is among the first k. May be null.
  float* correct = nullptr;
  int64_t k = 1;
  // The terms of a meter, including the results above. May be empty.
  MeterTerms meter;
};
// Computes softmax_cross_entropy together with other results of the same rows.
void RunCrossEntropy(const CrossEntropy& work, void* sums, Stream stream);

// softmax_cross_entropy_grad. `grad` has `type`.
void RunCrossEntropyGrad(int64_t rows, int64_t classes, const float* probabilities, const int32_t* labels,
                         const float* grad_loss, DType type, void* grad, Stream stream);

// count_correct. Either `labels` or `shares` is null.
void RunCountCorrect(int64_t rows, int64_t classes, DType type, const void* scores, const int32_t* labels,
                     const float* shares, int64_t k, int64_t ignored, float* correct, void* sums,
                     Stream stream);

// count_labels.
void RunCountLabels(int64_t count, const int32_t* labels, int64_t ignored, float* counted, void* sums,
                    Stream stream);

// count_sides. Either `labels` or `numbers` is null.
void RunCountSides(int64_t elements, DType type, const void* x, const int32_t* labels, const float* numbers,
                   float* right, void* sums, Stream stream);

// accumulate.
void AddToMeter(const MeterTerms& terms, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLASSIFICATION_H_
