#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_CONTEXT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_CONTEXT_H_

#include <algorithm>
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
  bool allow_tf32 = false;          // Uses tensor cores for float32, with 10 bits of fraction.
  bool deterministic = false;       // Makes two runs on GPUs of the same kind equal bit for bit.
  // See v1::GpuOptions. 0 means its default.
  int64_t memory_limit_bytes = 0;
  int64_t workspace_limit_bytes = 0;
  int max_threads_per_block = 0;
  int max_blocks = 0;
  // The kernels whose blocks wait for each other share the multiprocessors. Otherwise two such kernels could
  // each hold a part, and wait for the rest for ever.
  int replicas_per_device = 1;
};

// The objects of a replica's work on a GPU. Its variables and executables share the context and keep it
// alive. Used by a single thread at a time.
struct DeviceContext {
  DeviceContext() = default;
  explicit DeviceContext(const CudaOptions& options) : options(options), memory(options.memory_limit_bytes) {}

  int ordinal = 0;
  CudaOptions options;
  DeviceProperties properties;
  MemoryBudget memory;
  std::unique_ptr<OwnedStream> stream;
  // For large inputs. Null before the first executable with large inputs.
  std::unique_ptr<OwnedStream> copies;
  std::unique_ptr<Blas> blas;
  std::unique_ptr<Dnn> dnn;

  // Returns the multiprocessors among which this replica's kernels divide their work.
  int multiprocessors() const {
    return std::max(1, properties.multiprocessors / std::max(1, options.replicas_per_device));
  }
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_CONTEXT_H_
