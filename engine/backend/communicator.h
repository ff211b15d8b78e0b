#ifndef TANDEM_ENGINE_BACKEND_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKEND_COMMUNICATOR_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// Elements in the memory of a rank's device.
struct BufferView {
  void* data = nullptr;
  int64_t elements = 0;
  DType dtype = DType::kFloat32;
};

// The combination of the ranks' elements.
enum class ReduceOp : uint8_t { kSum, kAverage };

// A rank's end of a group of replicas. Every rank makes the same calls in the same order, from a single
// thread at a time. A call returns when its result is in place. After Abort by any rank, every call of every
// rank returns the status of Abort, including blocked calls.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // Replaces the elements of each rank by their reduction over all ranks. The elements are added in the order
  // of ranks, so all ranks have the same bits. Integers support kSum alone. INVALID_ARGUMENT for all ranks if
  // sizes or types differ.
  virtual absl::Status AllReduce(BufferView buffer, ReduceOp op) = 0;
  // Begins AllReduce and returns a number for Await. The numbers grow from call to call. Until Await returns,
  // the caller must neither use nor move the elements. Begun reductions run in order, before the reductions
  // of later calls. This default runs the whole reduction at once.
  virtual absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) {
    absl::Status status = AllReduce(buffer, op);
    if (!status.ok()) return status;
    return 0;
  }
  // Returns when this reduction and all earlier reductions have ended, with their first error. Every begun
  // reduction needs an Await, even after an error. After Await the elements belong to the caller again,
  // whatever it returns.
  virtual absl::Status Await(int64_t /*begun*/) { return status(); }
  // Replaces the elements of each rank by the elements of rank `root`.
  virtual absl::Status Broadcast(BufferView buffer, int root) = 0;
  // Returns when all ranks have called it.
  virtual absl::Status Barrier() = 0;
  // Ends the group with `status`, which is an error. The first call counts. Any thread may call it.
  virtual void Abort(absl::Status status) = 0;
  // Returns OK until the group ends, by Abort or by the loss of a rank. Then returns the reason. Does not
  // block. Any thread may call it.
  virtual absl::Status status() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COMMUNICATOR_H_
