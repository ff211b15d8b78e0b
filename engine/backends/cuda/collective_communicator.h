#ifndef TANDEM_ENGINE_BACKENDS_CUDA_COLLECTIVE_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_COLLECTIVE_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/backend/communicator.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/driver/collective.h"
#include "engine/backends/cuda/reduction_stream.h"
#include "engine/backends/cuda/staged_communicator.h"
#include "engine/base/mutex.h"

namespace tandem::cuda {

// A communicator for memory of GPUs, of one host or several, that moves elements by NCCL, and whose ranks
// agree on what they do through one for the host's memory. The order of NCCL's additions is its own. A call
// waits for all that the device's stream was given. A reduction that was begun goes on in a stream of its
// own, and neither it nor its Await waits on the host; of its size, type and operation the ranks agree once,
// when the first of them begins. Used by the device's thread, but for Abort.
//
// That they agree once is why all ranks must begin the same sizes in the same order, as those do that compile
// one graph. What differs the first time is seen, and the host's communicator refuses it for all of them.
// What was agreed on before is not compared again: where a rank then begins another of the agreed sizes than
// the others do, NCCL adds what does not belong together, or waits for what never comes; where it begins one
// that is new while the others do not, it waits for them in the host's communicator, and they for it in NCCL.
// Such waits end with the time limit and no earlier, and nothing says that sums are wrong.
//
// A wait for the GPU in a collective has a time limit: 30 minutes, or what TANDEM_COLLECTIVE_TIME_LIMIT in
// the environment says, such as 90s (CollectiveTimeLimit). Then the group ends with DEADLINE_EXCEEDED.
//
// A rank that is lost, or that fails, ends the calls of the others as soon as the host's communicator knows
// of it: a wait for NCCL looks there, as a thread does while reductions go on that nobody waits for, and
// NCCL's work in the streams is aborted. What it was to make is rubbish then: status() says so before the
// stream's work ends.
class CollectiveCommunicator final : public Communicator {
 public:
  // `host` outlives it.
  CollectiveCommunicator(std::shared_ptr<DeviceContext> device, Communicator* host);
  ~CollectiveCommunicator() override;

  // Brings the ranks together: all of them call it first. INVALID_ARGUMENT: the environment's time limit is
  // none. Whether it did, for all alike; without, calls pass
  // through the host's memory. False where a rank has no NCCL, or TANDEM_NCCL is 0 in its environment, or
  // where NCCL refuses the group, as it does two ranks of one host on one GPU.
  absl::StatusOr<bool> Join();

  int rank() const override { return host_->rank(); }
  int world_size() const override { return host_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override;
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override;
  absl::Status Await(int64_t begun) override;
  absl::Status Broadcast(BufferView buffer, int root) override;
  absl::Status Barrier() override { return host_->Barrier(); }
  void Abort(absl::Status status) override;
  absl::Status status() const override { return host_->status(); }

 private:
  enum class Call : int64_t { kSum, kAverage, kBroadcast };

  // Whether all ranks have `value`, which is 0 or 1, at 1.
  absl::StatusOr<bool> AllHave(bool value);
  // Whether all ranks bring the same, and NCCL is to do it.
  absl::StatusOr<bool> Agree(Call call, int root, BufferView buffer);
  // Waits for the stream; ends the group where `status`, or what it waits for, is an error.
  absl::Status Finish(absl::Status status);
  // Looks after reductions that were begun, until the end or an abort.
  void Watch();

  const std::shared_ptr<DeviceContext> device_;
  Communicator* const host_;
  ReductionStream reductions_;
  StagedCommunicator staged_;
  std::unique_ptr<Event> done_;
  // Join fails where it is none.
  const absl::StatusOr<absl::Duration> time_limit_;
  // What was begun once, and all ranks brought alike: operation, elements, type. Not compared again.
  std::set<std::tuple<Call, int64_t, DType>> agreed_;
  std::thread watch_;  // From the first that was begun on.
  Mutex mutex_;
  // Set by Join, once; null where there is none.
  std::shared_ptr<Collective> collective_ ABSL_GUARDED_BY(mutex_);
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration begun_at_ ABSL_GUARDED_BY(mutex_);  // The newest.
  Collective* joined_ = nullptr;                     // The same, for the device's thread.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_COLLECTIVE_COMMUNICATOR_H_
