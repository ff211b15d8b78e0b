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

// C = alpha op(A) op(B) + beta C [+ bias], `batch` times, all matrices row-major. op(A) is [m, k], op(B) [k,
// n], C [m, n]. A transposed A is [k, m] in memory, a transposed B [n, k].
struct GemmSpec {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  // Elements from a row in memory to the next. 0: dense.
  int64_t row_a = 0;
  int64_t row_b = 0;
  int64_t row_c = 0;
  int64_t batch = 1;
  // Elements from a matrix of the batch to the next. 0 with a batch above 1: dense.
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
  DType type = DType::kFloat32;         // Of A and B: float32, bfloat16 or float16.
  DType result_type = DType::kFloat32;  // Of C.
  double alpha = 1;
  double beta = 0;
  bool bias = false;  // Adds [n], of the result's type, to each row.
  // Returns a single line that differs between different problems.
  std::string ToString() const;
};

// The rows and strides of a spec, with defaults filled in.
struct GemmPlaces {
  explicit GemmPlaces(const GemmSpec& spec);
  int64_t row_a, row_b, row_c;
  int64_t stride_a, stride_b, stride_c;
};

// A planned product.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual int64_t workspace_bytes() const = 0;
  // All memory is on the device and 256-byte aligned. `workspace` has workspace_bytes().
  virtual absl::Status Run(const void* a, const void* b, void* c, const void* bias, void* workspace,
                           Stream stream) const = 0;
};

// Matrix products on a device: cuBLASLt, or loops in the emulation. Used by a single thread at a time.
class Blas {
 public:
  virtual ~Blas() = default;
  // Chooses an algorithm with at most `workspace_cap` bytes of workspace. UNIMPLEMENTED if there is none.
  virtual absl::StatusOr<std::unique_ptr<Gemm>> Plan(const GemmSpec& spec, int64_t workspace_cap) = 0;
};

struct LibraryOptions {
  bool allow_tf32 = false;     // For float32 products and convolutions.
  bool deterministic = false;  // Only algorithms that always give the same bits.
  // Returns the bytes of device memory that may be used for a while to measure algorithms. Null: all free
  // bytes. If they are too few, the library's guess is used.
  std::function<int64_t()> room = nullptr;
};
// Returns the key of a library's choice for a problem: a single line with everything on which it depends.
std::string PlanKey(absl::string_view library, size_t version, absl::string_view gpu,
                    const LibraryOptions& options, absl::string_view spec, int64_t workspace_cap);

// UNAVAILABLE with the searched places if the library is not found.
absl::StatusOr<std::unique_ptr<Blas>> CreateBlas(const LibraryOptions& options);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_BLAS_H_
