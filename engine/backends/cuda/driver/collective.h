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

// A rank's end of a group of GPUs, of one process or several, of one host or several: NCCL, or threads of the
// process in the emulation. All ranks make the same calls with the same sizes and types in the same order,
// each from a single thread. Only Abort may be called from another thread.
class Collective {
 public:
  // Waits some seconds for work in the stream, and aborts it then.
  virtual ~Collective() = default;
  // Puts the sum, or the mean, over all ranks into the stream. The library chooses the order of additions.
  // All ranks get the same result.
  virtual absl::Status AllReduce(void* data, int64_t elements, DType dtype, bool average, Stream stream) = 0;
  // Puts the distribution of rank `root`'s elements into the stream.
  virtual absl::Status Broadcast(void* data, int64_t elements, DType dtype, int root, Stream stream) = 0;
  // Returns the error of the work in the stream so far: UNAVAILABLE if a rank is lost.
  virtual absl::Status Check() = 0;
  // Ends the work in the stream. Later calls return ABORTED, on this rank.
  virtual void Abort() = 0;
};

// UNAVAILABLE with the searched places if there is no library.
absl::Status CheckCollectives();
inline constexpr int64_t kCollectiveIdBytes = 128;
// Makes the id by which the ranks of a group find each other. A single rank calls it.
absl::StatusOr<std::string> MakeCollectiveId();
// Joins a group, for the thread's device. Returns when all ranks have called it. DEADLINE_EXCEEDED if a rank
// does not.
absl::StatusOr<std::unique_ptr<Collective>> JoinCollective(const std::string& id, int rank, int world_size,
                                                           absl::Duration timeout);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_COLLECTIVE_H_
