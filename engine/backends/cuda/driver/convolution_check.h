#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CONVOLUTION_CHECK_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CONVOLUTION_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/driver.h"

// Whether a library's engine computes a convolution as exactly as its type promises. cuDNN's notes are not
// enough. In cuDNN 9.19 on Hopper, an engine for gradients of weights has no notes, and its float32 products
// are as inexact as in TF32.

namespace tandem::cuda {

// Exact results of a convolution of RandomNumbers, at some places. A value type. Used by a single thread at a
// time.
class ConvolutionCheck {
 public:
  // Computes the exact results, within some milliseconds.
  explicit ConvolutionCheck(const ConvolutionSpec& spec);

  // Compares `results`, which the convolution wrote, on the thread's device. Returns the largest error, or
  // infinity for NaN. The unit is the root of the sum of the squared products, or the exact result if it is
  // larger. Waits for the stream. INTERNAL if numbers cannot be copied.
  absl::StatusOr<double> Error(const void* results, const OwnedStream& stream) const;

 private:
  struct Number {
    int64_t place;
    double exact;
    double size;  // The unit of the error.
  };

  DType type_;
  std::vector<Number> numbers_;
};

// Returns the largest allowed error of an engine.
double MostConvolutionError(DType type, bool allow_tf32);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CONVOLUTION_CHECK_H_
