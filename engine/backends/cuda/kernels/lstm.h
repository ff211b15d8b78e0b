#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LSTM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LSTM_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

struct LstmSizes {
  int64_t samples = 0;
  int64_t length = 0;
  int64_t units = 0;
};

// A step at `position`, as in graph/ops/lstm.h. Tensors are plain. `void` tensors have `type`: float32,
// bfloat16 or float16.
struct LstmStep {
  LstmSizes sizes;
  int64_t position = 0;
  const void* projected = nullptr;  // [N, L, 4 H].
  const float* product = nullptr;   // [N, 4 H]: weight h.
  const float* bias = nullptr;      // [4 H].
  const float* c_before = nullptr;  // [N, H].
  void* gates = nullptr;            // [N, L, 4 H]. May be `projected`.
  float* cells = nullptr;           // [N, L, H].
  void* y = nullptr;                // [N, L, H].
  void* h = nullptr;                // [N, H]: y at the position.
  float* c = nullptr;               // [N, H]: cells at the position. May be c_before.
};
void RunLstmStep(const LstmStep& step, DType type, Stream stream);

struct LstmStepGrad {
  LstmSizes sizes;
  int64_t position = 0;
  const void* gates = nullptr;      // [N, L, 4 H].
  const float* cells = nullptr;     // [N, L, H].
  const float* c_before = nullptr;  // [N, H] with rows `c_before_row` elements apart.
  int64_t c_before_row = 0;
  const void* grad_y = nullptr;    // [N, L, H].
  const float* grad_h = nullptr;   // [N, H]: from the next step.
  const float* grad_c = nullptr;   // [N, H]: from the next step.
  void* grad_projected = nullptr;  // [N, L, 4 H]. May be `gates`.
  void* grads = nullptr;           // [N, 4 H]: grad_projected at the position.
  float* grad_c_before = nullptr;  // [N, H]. May be grad_c.
};
void RunLstmStepGrad(const LstmStepGrad& step, DType type, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_LSTM_H_
