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

// A communicator for memory of GPUs, of one host or several. It moves elements by NCCL. Its ranks agree on
// each call through a communicator for host memory. NCCL chooses the order of additions. A call waits for all
// earlier work of the device's stream. A begun reduction runs in a separate stream. Neither it nor its Await
// blocks the host. Ranks agree on its size, type and operation when such a reduction begins for the first
// time. Used by the device's thread, except Abort.
//
// So all ranks must begin the same sizes in the same order, as ranks with the same graph do. The first time,
// a difference is detected, and the host's communicator refuses the call for all ranks. Later reductions of
// an agreed kind are not compared. If a rank then begins another agreed size than the others, NCCL adds wrong
// elements or waits forever. If a rank alone begins a new size, it waits in the host's communicator, and the
// others wait in NCCL. Such waits end with the time limit. Wrong sums are not detected.
//
// A wait for the GPU in a collective has a time limit: TANDEM_COLLECTIVE_TIME_LIMIT in the environment, such
// as 90s, or 30 minutes (CollectiveTimeLimit). Then the group ends with DEADLINE_EXCEEDED.
//
// A lost or failed rank ends the calls of the others as soon as the host's communicator knows of it. Waits
// for NCCL check the host's communicator. A thread checks it while reductions run that nobody awaits. Then
// NCCL's work in the streams is aborted, and its results are rubbish. status() returns the error before the
// stream's work ends.
class CollectiveCommunicator final : public Communicator {
 public:
  // `host` must outlive this object.
  CollectiveCommunicator(std::shared_ptr<DeviceContext> device, Communicator* host);
  ~CollectiveCommunicator() override;

  // Connects the ranks. All ranks must call it first. Returns whether NCCL is used, the same for all ranks.
  // Returns false if a rank has no NCCL, if TANDEM_NCCL is 0 in its environment, or if NCCL refuses the
  // group, for example two ranks of a host on the same GPU. Then calls use the host's memory.
  // INVALID_ARGUMENT if the environment's time limit is wrong.
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

  // Returns whether all ranks have `value` 1. `value` is 0 or 1.
  absl::StatusOr<bool> AllHave(bool value);
  // Returns whether all ranks make the same call and NCCL is to do it.
  absl::StatusOr<bool> Agree(Call call, int root, BufferView buffer);
  // Waits for the stream. Ends the group if `status` or the wait is an error.
  absl::Status Finish(absl::Status status);
  // Watches begun reductions, until the end or an abort.
  void Watch();

  const std::shared_ptr<DeviceContext> device_;
  Communicator* const host_;
  ReductionStream reductions_;
  StagedCommunicator staged_;
  std::unique_ptr<Event> done_;
  // Join returns its error.
  const absl::StatusOr<absl::Duration> time_limit_;
  // Kinds of begun reductions that all ranks agreed on: operation, elements, type. They are not compared
  // again.
  std::set<std::tuple<Call, int64_t, DType>> agreed_;
  std::thread watch_;  // Runs from the first begun reduction on.
  Mutex mutex_;
  // Set once, by Join. Null without NCCL.
  std::shared_ptr<Collective> collective_ ABSL_GUARDED_BY(mutex_);
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration begun_at_ ABSL_GUARDED_BY(mutex_);  // Of the newest reduction.
  Collective* joined_ = nullptr;                     // collective_, for the device's thread.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_COLLECTIVE_COMMUNICATOR_H_
