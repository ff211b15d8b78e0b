#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "engine/backends/cuda/driver/blas.h"

// Loops, for the emulation.

namespace tandem::cuda {

absl::StatusOr<std::unique_ptr<Blas>> CreateBlas(const LibraryOptions& /*options*/) {
  return absl::UnimplementedError("blas");
}

}  // namespace tandem::cuda
