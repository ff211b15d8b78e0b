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

// How ranks' elements become one.
enum class ReduceOp : uint8_t { kSum, kAverage };

// One rank's end of a group of replicas. Every rank of a group makes the same calls in the same order, each
// from one thread at a time. A call returns when the result is in place. After Abort, by any rank, every call
// of every rank, a blocked one too, returns that status, for ever.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // Replaces each rank's elements by the reduction over all ranks, added in the order of ranks, so that all
  // ranks have the same bits. INVALID_ARGUMENT for all ranks where their sizes or types differ. Integers:
  // kSum alone.
  virtual absl::Status AllReduce(BufferView buffer, ReduceOp op) = 0;
  // Begins AllReduce and may return before the result is in place: until Await of the number that it returns,
  // which grows from call to call, the elements are the group's alone, and stay where they are. What has
  // begun is reduced in that order, before what any other call does. A communicator that gains nothing by it
  // does all of it at once, as this one.
  virtual absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) {
    absl::Status status = AllReduce(buffer, op);
    if (!status.ok()) return status;
    return 0;
  }
  // Returns when the result of the reduction of that number, and of all that began before it, is in place:
  // with the first of their errors, if there is one. Nothing that was begun is left to itself: who gives up
  // awaits it as well, after which the elements are the caller's again, whatever it says.
  virtual absl::Status Await(int64_t /*begun*/) { return status(); }
  // Replaces each rank's elements by those of rank `root`.
  virtual absl::Status Broadcast(BufferView buffer, int root) = 0;
  // Returns when all ranks have called it.
  virtual absl::Status Barrier() = 0;
  // Ends the group with `status`, which is not OK. May be called from any thread; the first call counts.
  virtual void Abort(absl::Status status) = 0;
  // OK until the group has ended, by Abort or because a rank was lost, and then why. Waits for nothing; from
  // any thread.
  virtual absl::Status status() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_COMMUNICATOR_H_
