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

// What is computed of y = x * w.
enum class ConvolutionKind : uint8_t { kForward, kGradInput, kGradWeight };

// x [n, h, w, c], weight [k, kernel_h, kernel_w, c / groups], y [n, out_h, out_w, k]: channels last, dense.
struct ConvolutionSpec {
  ConvolutionKind kind = ConvolutionKind::kForward;
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t k = 0, kernel_h = 0, kernel_w = 0;
  int64_t out_h = 0, out_w = 0;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_h = 0, pad_w = 0;  // On each side.
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;
  DType type = DType::kFloat32;  // Of x, weight and y: float32, bfloat16 or float16; sums are float32.
  bool bias = false;             // kForward: adds [k], of the same type.
  bool relu = false;             // kForward: of the result.
  // Such as "forward 256x28x28x64 64x3x3 28x28 stride 1x1 ... bfloat16": unlike for unlike problems, one
  // line.
  std::string ToString() const;
};

// A convolution that is ready to be computed.
class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual int64_t workspace_bytes() const = 0;
  // Whether Run adds the bias, and takes the ReLU, that were asked for: libraries cannot always.
  virtual bool adds_bias() const = 0;
  virtual bool takes_relu() const = 0;
  // The algorithm's name, for messages.
  virtual std::string algorithm() const = 0;
  // kForward writes y, kGradInput x, kGradWeight weight, all of it. All memory is 256-byte aligned, and the
  // device's.
  virtual absl::Status Run(void* x, void* weight, void* y, const void* bias, void* workspace,
                           Stream stream) const = 0;
};

// Convolutions on a device: cuDNN, or loops in the emulation. Used by one thread at a time.
class Dnn {
 public:
  virtual ~Dnn() = default;
  // Chooses the algorithm, perhaps by measuring some; with at most `workspace_cap` bytes of workspace.
  virtual absl::StatusOr<std::unique_ptr<Convolution>> Plan(const ConvolutionSpec& spec,
                                                            int64_t workspace_cap) = 0;
};

// UNAVAILABLE where the library is not found, with where it was looked for.
absl::StatusOr<std::unique_ptr<Dnn>> CreateDnn(const LibraryOptions& options);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_DNN_H_
