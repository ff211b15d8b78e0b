#include <memory>
#include <utility>

#include "engine/backends/cuda/driver/blas.h"
#include "engine/backends/cuda/driver/emulated_stream.h"
#include "engine/backends/cuda/driver/loops.h"
#include "engine/base/status_macros.h"

// Loops in place of cuBLASLt, for the emulation.

namespace tandem::cuda {
namespace {

class LoopGemm final : public Gemm {
 public:
  explicit LoopGemm(const GemmSpec& spec) : spec_(spec) {}
  int64_t workspace_bytes() const override { return 0; }
  absl::Status Run(const void* a, const void* b, void* c, const void* bias, void* /*workspace*/,
                   Stream stream) const override {
    Give(stream, [=, spec = spec_] { MultiplyByLoops(spec, a, b, c, bias); });
    return absl::OkStatus();
  }

 private:
  const GemmSpec spec_;
};

class LoopBlas final : public Blas {
 public:
  absl::StatusOr<std::unique_ptr<Gemm>> Plan(const GemmSpec& spec, int64_t /*workspace_cap*/) override {
    TANDEM_RETURN_IF_ERROR(CheckSpec(spec));
    return std::unique_ptr<Gemm>(new LoopGemm(spec));
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Blas>> CreateBlas(const LibraryOptions& /*options*/) {
  return std::unique_ptr<Blas>(new LoopBlas());
}

}  // namespace tandem::cuda
