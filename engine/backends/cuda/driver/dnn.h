#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DNN_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DNN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// The part of y = x * w that is computed.
enum class ConvolutionKind : uint8_t { kForward, kGradInput, kGradWeight };

// The problem: x [n, h, w, c], weight [k, kernel_h, kernel_w, c / groups], y [n, out_h, out_w, k]. Channels
// last, dense.
struct ConvolutionSpec {
  ConvolutionKind kind = ConvolutionKind::kForward;
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t k = 0, kernel_h = 0, kernel_w = 0;
  int64_t out_h = 0, out_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;  // On each side.
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  DType type = DType::kFloat32;  // Of x, weight and y: float32, bfloat16 or float16. Sums are float32.
  bool bias = false;             // kForward: adds [k], of the same type.
  bool relu = false;             // kForward: applies the ReLU to the result.
  // Returns a single line that differs between different problems, such as "forward 256x28x28x64 64x3x3 28x28
  // stride 1x1 ... bfloat16".
  std::string ToString() const;
};

// A planned convolution.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Return whether Run adds the requested bias and applies the requested ReLU. Libraries cannot always do it.
  virtual bool adds_bias() const = 0;
  virtual bool takes_relu() const = 0;
  // Returns the algorithm's name, for messages.
  virtual std::string algorithm() const = 0;
  // Computes the whole result: y for kForward, x for kGradInput, weight for kGradWeight. All memory is on the
  // device and 256-byte aligned.
  virtual absl::Status Run(void* x, void* weight, void* y, const void* bias, void* workspace,
                           Stream stream) const = 0;
};

// Convolutions on a device: cuDNN, or loops in the emulation. Used by a single thread at a time.
class Dnn {
 public:
  virtual ~Dnn() = default;
  // Chooses an algorithm with at most `workspace_cap` bytes of workspace. May measure several. UNIMPLEMENTED
  // if there is none.
  virtual absl::StatusOr<std::unique_ptr<Convolution>> Plan(const ConvolutionSpec& spec,
                                                            int64_t workspace_cap) = 0;
};

// UNAVAILABLE with the searched places if the library is not found.
absl::StatusOr<std::unique_ptr<Dnn>> CreateDnn(const LibraryOptions& options);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DNN_H_
