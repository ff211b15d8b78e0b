#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_BLAS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_BLAS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// C = alpha op(A) op(B) + beta C [+ bias], `batch` times, all matrices row-major: op(A) is [m, k], op(B) [k,
// n], C [m, n]. A that is transposed lies as [k, m], B as [n, k].
struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  // Elements from one row, as it lies, to the next; 0: dense.
  int64_t row_a = 0;
  int64_t row_b = 0;
  int64_t row_c = 0;
  int64_t batch = 1;
  // Elements from one matrix of the batch to the next; 0 with a batch above 1: dense.
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  DType type = DType::kFloat32;         // Of A and B: float32, bfloat16 or float16.
  DType result_type = DType::kFloat32;  // Of C.
  double alpha = 1;
  double beta = 0;
  bool bias = false;  // Adds [n], of the result's type, to each row.
  // Unlike for unlike problems, one line.
  std::string ToString() const;
};

// The rows and strides of a spec, with none left out.
struct GemmPlaces {
  explicit GemmPlaces(const GemmSpec& spec);
  int64_t row_a, row_b, row_c;
  int64_t stride_a, stride_b, stride_c;
};

// A product that is ready to be computed.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual int64_t workspace_bytes() const = 0;
  // All memory is 256-byte aligned, and the device's; `workspace` is of that size.
  virtual absl::Status Run(const void* a, const void* b, void* c, const void* bias, void* workspace,
                           Stream stream) const = 0;
};

// Matrix products on a device: cuBLASLt, or loops in the emulation. Used by one thread at a time.
class Blas {
 public:
  virtual ~Blas() = default;
  // Chooses the algorithm; with at most `workspace_cap` bytes of workspace.
  virtual absl::StatusOr<std::unique_ptr<Gemm>> Plan(const GemmSpec& spec, int64_t workspace_cap) = 0;
};

struct LibraryOptions {
  bool allow_tf32 = false;     // For float32 products and convolutions.
  bool deterministic = false;  // Only algorithms that give the same bits every time.
  // Bytes of the device that may be taken, for a while, to measure algorithms in; null: all that are free.
  // Where they do not do, the library's guess is taken.
  std::function<int64_t()> room = nullptr;
};
// What a library's choice for a problem is remembered by: all that it depends on, in one line.
std::string PlanKey(absl::string_view library, size_t version, absl::string_view gpu,
                    const LibraryOptions& options, absl::string_view spec, int64_t workspace_cap);

// UNAVAILABLE where the library is not found, with where it was looked for.
absl::StatusOr<std::unique_ptr<Blas>> CreateBlas(const LibraryOptions& options);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_BLAS_H_
