#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_VALUE_LOSS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_VALUE_LOSS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/row_sums.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// Repeating numbers: element i has numbers[i % count], or 1 if there are none.
struct RepeatedNumbers {
  const float* numbers = nullptr;
  int64_t count = 0;
};

// The data of value_loss and its gradient. engine/graph/ops/value_loss.h defines their meaning.
struct ValueLoss {
  enum class Mode : uint8_t { kSquared, kAbsolute, kHuber, kSmoothL1, kLogistic, kKl, kKlOfLogs };
  Mode mode = Mode::kSquared;
  float width = 1;
  double divisor = 1;
  RepeatedNumbers positive_weights;
  RepeatedNumbers weights;

  int64_t elements = 0;
  DType type = DType::kFloat32;  // Of x: float32, bfloat16 or float16.
  const void* x = nullptr;
  const int32_t* labels = nullptr;  // Null if there are numbers.
  const float* numbers = nullptr;   // Null if there are labels.
};

// `sums` is memory of kRowSumBytes.
void RunValueLoss(const ValueLoss& work, float* loss, void* sums, Stream stream);
// `grad` has the type of x, and may be its memory.
void RunValueLossGrad(const ValueLoss& work, const float* grad_loss, void* grad, Stream stream);

// The data of cosine_embedding and its gradient. See engine/graph/ops/cosine_embedding.h.
struct CosineLoss {
  int64_t count = 0;  // Of pairs of vectors.
  int64_t size = 0;
  int64_t first_stride = 0;
  int64_t second_stride = 0;
  int64_t second_offset = 0;
  double epsilon = 0;
  double margin = 0;
  bool sum = false;

  DType type = DType::kFloat32;    // Of the first vectors: float32, bfloat16 or float16.
  const void* first = nullptr;     // With `alike`, also the second vectors.
  const float* second = nullptr;   // Null with `alike`.
  const int32_t* alike = nullptr;  // Null if all pairs are alike.
};

void RunCosineLoss(const CosineLoss& work, float* loss, void* sums, Stream stream);
// `grad` has `type` and the shape of the first input.
void RunCosineLossGrad(const CosineLoss& work, const float* grad_loss, void* grad, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_VALUE_LOSS_H_
