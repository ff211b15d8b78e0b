#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_CONTEXT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_CONTEXT_H_

#include <cstdint>
#include <memory>

#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/memory_budget.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

struct CudaOptions {
  DType compute = DType::kFloat32;  // Or bfloat16, or float16.
  bool allow_tf32 = false;          // Matrix units for float32, with 10 bits of fraction.
  bool deterministic = false;       // Two runs on a GPU of one kind are equal bit for bit.
  // See v1::GpuOptions; 0: the default there.
  int64_t memory_limit_bytes = 0;
  int64_t workspace_limit_bytes = 0;
  int max_threads_per_block = 0;
  int max_blocks = 0;
};

// What a replica's work on a GPU goes through. Its variables and executables share it, and keep it alive.
// Used by one thread at a time.
struct DeviceContext {
  DeviceContext() = default;
  explicit DeviceContext(const CudaOptions& options) : options(options), memory(options.memory_limit_bytes) {}

  int ordinal = 0;
  CudaOptions options;
  DeviceProperties properties;
  MemoryBudget memory;
  std::unique_ptr<OwnedStream> stream;
  // Of large inputs on their way to the device; null before the first executable that has such.
  std::unique_ptr<OwnedStream> copies;
  std::unique_ptr<Blas> blas;
  std::unique_ptr<Dnn> dnn;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_CONTEXT_H_
