#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLASS_LOSS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLASS_LOSS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/row_sums.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// The data of class_loss and its gradient. engine/graph/ops/class_loss.h defines their meaning.
struct ClassLoss {
  enum class Mode : uint8_t { kCrossEntropy, kLogLikelihood, kHinge };
  Mode mode = Mode::kCrossEntropy;
  double label_smoothing = 0;
  int64_t ignored = 0;  // A number that is no label if none is ignored.
  int p = 1;
  double margin = 1;
  bool sum = false;

  int64_t rows = 0;
  int64_t classes = 0;
  DType type = DType::kFloat32;  // Of the scores: float32, bfloat16 or float16.
  const void* scores = nullptr;
  const int32_t* labels = nullptr;  // Null if there are shares.
  const float* shares = nullptr;    // Null if there are labels.
  const float* weights = nullptr;   // May be null.
};

// `sums` is memory of kRowSumBytes.
void RunClassLoss(const ClassLoss& work, float* loss, float* loss_sum, float* weight, void* sums,
                  Stream stream);
// `grad` has the scores' type, and may be their memory. `factor` is memory for a number.
void RunClassLossGrad(const ClassLoss& work, const float* grad_loss, void* grad, float* factor, void* sums,
                      Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CLASS_LOSS_H_
