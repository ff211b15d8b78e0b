#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>

#include "engine/backends/cuda/driver/dnn.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/base/status_macros.h"

// Loops in place of cuDNN, for the emulation.

namespace tandem::cuda {
namespace {

// Like cuDNN's kernels, a convolution clears some memory and expects it to be clear.
constexpr int64_t kWorkspaceBytes = 256;

class LoopConvolution final : public Convolution {
 public:
  LoopConvolution(const ConvolutionSpec& spec, bool works) : spec_(spec), works_(works) {}
  int64_t workspace_bytes() const override { return works_ ? kWorkspaceBytes : 0; }
  bool adds_bias() const override { return spec_.bias; }
  bool takes_relu() const override { return spec_.relu; }
  std::string algorithm() const override { return "loops"; }
  absl::Status Run(void* x, void* weight, void* y, const void* bias, void* workspace,
                   Stream stream) const override {
    if (works_) TANDEM_RETURN_IF_ERROR(Zero(workspace, kWorkspaceBytes, stream));
    Give(stream, [=, spec = spec_, works = works_] {
      auto* bytes = static_cast<unsigned char*>(workspace);
      if (works &&
          std::any_of(bytes, bytes + kWorkspaceBytes, [](unsigned char byte) { return byte != 0; })) {
        std::cerr << "the workspace of " << spec.ToString() << " is not clear" << std::endl;
        std::abort();
      }
      ConvolveByLoops(spec, x, weight, y, bias);
      if (works) std::memset(bytes, 0xff, kWorkspaceBytes);
    });
    return absl::OkStatus();
  }

 private:
  const ConvolutionSpec spec_;
  const bool works_;
};

class LoopDnn final : public Dnn {
 public:
  absl::StatusOr<std::unique_ptr<Convolution>> Plan(const ConvolutionSpec& spec,
                                                    int64_t workspace_cap) override {
    TANDEM_RETURN_IF_ERROR(CheckSpec(spec));
    return std::unique_ptr<Convolution>(new LoopConvolution(spec, workspace_cap >= kWorkspaceBytes));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dnn>> CreateDnn(const LibraryOptions& /*options*/) {
  return std::unique_ptr<Dnn>(new LoopDnn());
}

}  // namespace tandem::cuda
