#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CONVOLUTION_CHECK_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CONVOLUTION_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/driver.h"

// Whether an engine of a library computes a convolution as exactly as its type promises. cuDNN's notes do not
// tell: of cuDNN 9.19 on Hopper, an engine for gradients of weights has no notes, and its products in float32
// are off by as much as products in TF32.

namespace tandem::cuda {

// Exact results of a convolution of RandomNumbers, at some places. A value; used by any one thread at a time.
class ConvolutionCheck {
 public:
  // Computes the exact results, within some milliseconds.
  explicit ConvolutionCheck(const ConvolutionSpec& spec);

  // Compares `results`, what the convolution wrote, on the thread's device. Returns the largest error, as a
  // part of the root of the sum of the squared products, or of the exact result if that is larger; infinity
  // for NaN. Waits for the stream. INTERNAL if numbers cannot be copied.
  absl::StatusOr<double> Error(const void* results, const OwnedStream& stream) const;

 private:
  struct Number {
    int64_t place;
    double exact;
    double size;  // What the error is a part of.
  };

  DType type_;
  std::vector<Number> numbers_;
};

// The largest error that an engine may have.
double MostConvolutionError(DType type, bool allow_tf32);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_CONVOLUTION_CHECK_H_
