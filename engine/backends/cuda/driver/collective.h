#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_COLLECTIVE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/backends/cuda/driver/driver.h"
#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// One rank's end of a group of GPUs, of one process or several, of one host or several: NCCL, or threads of
// the process in the emulation. All ranks make the same calls with the same sizes and types in the same
// order, each from one thread; only Abort may be called from another.
class Collective {
 public:
  virtual ~Collective() = default;
  // Puts the sum, or the mean, over all ranks into the stream. The order of additions is the library's own,
  // and the result the same for all ranks.
  virtual absl::Status AllReduce(void* data, int64_t elements, DType dtype, bool average, Stream stream) = 0;
  // The same, of rank `root`'s elements.
  virtual absl::Status Broadcast(void* data, int64_t elements, DType dtype, int root, Stream stream) = 0;
  // What has gone wrong since, in what is in the stream: UNAVAILABLE where a rank is lost.
  virtual absl::Status Check() = 0;
  // Ends what is in the stream, and every later call with ABORTED, on this rank.
  virtual void Abort() = 0;
};

// UNAVAILABLE where there is no library, with where it was looked for.
absl::Status CheckCollectives();
inline constexpr int64_t kCollectiveIdBytes = 128;
// What the ranks of one group come together by: made by one of them.
absl::StatusOr<std::string> MakeCollectiveId();
// Returns when all ranks have called it. For the thread's device. DEADLINE_EXCEEDED where one does not come.
absl::StatusOr<std::unique_ptr<Collective>> JoinCollective(const std::string& id, int rank, int world_size,
                                                           absl::Duration timeout);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_COLLECTIVE_H_
