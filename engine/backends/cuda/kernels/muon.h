#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MUON_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MUON_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/row_sums.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// m = momentum m + (1 - momentum) grad. x = u / max(|u|, epsilon), with u = nesterov ? (1 - momentum) grad +
// momentum m : m. `factor` is memory for a number, `sums` of kRowSumBytes.
struct MuonStart {
  int64_t elements = 0;
  const void* grad = nullptr;
  DType grad_type = DType::kFloat32;  // Or bfloat16, or float16.
  float* momentum_buffer = nullptr;
  float* x = nullptr;
  double momentum = 0;
  bool nesterov = false;
  double epsilon = 0;
  const double* apply = nullptr;  // On the device. May be null. If it is 0, m stays.
};
void StartMuon(const MuonStart& start, float* factor, void* sums, Stream stream);

// parameter = (1 - rate weight_decay) parameter - rate scale x, unless `apply` is 0.
void FinishMuon(int64_t elements, const float* x, const double* rate, double weight_decay, double scale,
                const double* apply, float* parameter, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MUON_H_
