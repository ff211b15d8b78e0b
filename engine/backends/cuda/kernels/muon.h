#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MUON_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MUON_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/row_sums.h"

namespace tandem::cuda {

// m = momentum m + (1 - momentum) grad; x = u / max(|u|, epsilon), where u = nesterov ? (1 - momentum) grad +
// momentum m : m. `factor` is memory for one number, `sums` of kRowSumBytes.
struct MuonStart {
  int64_t elements = 0;
  const void* grad = nullptr;  // Float32, or bfloat16.
  bool grad_is_bfloat16 = false;
  float* momentum_buffer = nullptr;
  float* x = nullptr;
  double momentum = 0;
  bool nesterov = false;
  double epsilon = 0;
};
void StartMuon(const MuonStart& start, float* factor, void* sums, Stream stream);

// parameter = (1 - rate weight_decay) parameter - rate scale x.
void FinishMuon(int64_t elements, const float* x, const double* rate, double weight_decay, double scale,
                float* parameter, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_MUON_H_
