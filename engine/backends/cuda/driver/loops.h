#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LOOPS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LOOPS_H_

#include "absl/status/status.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"

namespace tandem::cuda {

// Gemm::Run and Convolution::Run by loops over host memory, with sums in double. They serve the emulation and
// the tests of the libraries.

// INVALID_ARGUMENT if the spec is not consistent.
absl::Status CheckSpec(const GemmSpec& spec);
absl::Status CheckSpec(const ConvolutionSpec& spec);

void MultiplyByLoops(const GemmSpec& spec, const void* a, const void* b, void* c, const void* bias);
void ConvolveByLoops(const ConvolutionSpec& spec, void* x, void* weight, void* y, const void* bias);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_LOOPS_H_
