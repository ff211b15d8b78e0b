#ifndef TANDEM_ENGINE_BACKENDS_CUDA_PRODUCT_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_PRODUCT_H_

#include <string>

#include "absl/status/status.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Adds the steps of the product `spec` of `a` and `b` to `c`. With `spec.bias`, `bias` [n] is added;
// otherwise it is kNoValue. With `relu`, a separate step applies the ReLU, because some of cuBLASLt's fused
// kernels turn NaN into 0. UNIMPLEMENTED if the library has no algorithm within `workspace_cap` bytes.
absl::Status EmitProductTo(Lowering& lowering, const std::string& name, GemmSpec spec, Region a, Region b,
                           ValueId bias, bool relu, Region c, int64_t workspace_cap);

// As EmitProductTo, with `result`, a plain value, as the product.
absl::Status EmitProduct(Lowering& lowering, const std::string& name, const GemmSpec& spec, Region a,
                         Region b, ValueId bias, bool relu, ValueId result);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_PRODUCT_H_
