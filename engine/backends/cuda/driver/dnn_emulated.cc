#include "engine/backends/cuda/driver/dnn.h"
namespace tandem::cuda {
absl::StatusOr<std::unique_ptr<Dnn>> CreateDnn(const LibraryOptions& /*options*/) {
  return absl::UnimplementedError("dnn");
}
}  // namespace tandem::cuda
