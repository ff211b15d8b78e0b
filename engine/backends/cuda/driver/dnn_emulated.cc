#include <memory>
#include <string>

#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/base/status_macros.h"

// Loops in place of cuDNN, for the emulation.

namespace tandem::cuda {
namespace {

class LoopConvolution final : public Convolution {
 public:
  explicit LoopConvolution(const ConvolutionSpec& spec) : spec_(spec) {}
  int64_t workspace_bytes() const override { return 0; }
  bool adds_bias() const override { return spec_.bias; }
  bool takes_relu() const override { return spec_.relu; }
  std::string algorithm() const override { return "loops"; }
  absl::Status Run(void* x, void* weight, void* y, const void* bias, void* /*workspace*/,
                   Stream stream) const override {
    Give(stream, [=, spec = spec_] { ConvolveByLoops(spec, x, weight, y, bias); });
    return absl::OkStatus();
  }

 private:
  const ConvolutionSpec spec_;
};

class LoopDnn final : public Dnn {
 public:
  absl::StatusOr<std::unique_ptr<Convolution>> Plan(const ConvolutionSpec& spec,
                                                    int64_t /*workspace_cap*/) override {
    TANDEM_RETURN_IF_ERROR(CheckSpec(spec));
    return std::unique_ptr<Convolution>(new LoopConvolution(spec));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dnn>> CreateDnn(const LibraryOptions& /*options*/) {
  return std::unique_ptr<Dnn>(new LoopDnn());
}

}  // namespace tandem::cuda
