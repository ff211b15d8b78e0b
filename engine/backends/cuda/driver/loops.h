#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LOOPS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LOOPS_H_

#include "absl/status/status.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"

namespace tandem::cuda {

// What Gemm::Run and Convolution::Run compute, by loops on the host with sums in double: the emulation, and
// what the libraries are compared with. Memory is the host's.

// INVALID_ARGUMENT where the spec makes no sense.
absl::Status CheckSpec(const GemmSpec& spec);
absl::Status CheckSpec(const ConvolutionSpec& spec);

void MultiplyByLoops(const GemmSpec& spec, const void* a, const void* b, void* c, const void* bias);
void ConvolveByLoops(const ConvolutionSpec& spec, void* x, void* weight, void* y, const void* bias);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LOOPS_H_
