#ifndef TANDEM_ENGINE_BACKENDS_CUDA_STAGED_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_STAGED_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "engine/backend/communicator.h"
#include "engine/backends/cuda/device_context.h"

namespace tandem::cuda {

// A communicator for memory of a GPU on top of a communicator for host memory. It copies elements to pinned
// memory and back. It waits for all earlier work of the device's stream. Used by the device's thread, except
// Abort.
class StagedCommunicator final : public Communicator {
 public:
  // `host` must outlive this object.
  StagedCommunicator(std::shared_ptr<DeviceContext> device, Communicator* host)
      : device_(std::move(device)), host_(host) {}

  int rank() const override { return host_->rank(); }
  int world_size() const override { return host_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override;
  absl::Status Broadcast(BufferView buffer, int root) override;
  absl::Status Barrier() override { return host_->Barrier(); }
  void Abort(absl::Status status) override { host_->Abort(std::move(status)); }
  absl::Status status() const override { return host_->status(); }

 private:
  // Calls `function` with the buffer's elements in host memory, and copies them back.
  absl::Status Stage(BufferView buffer, absl::FunctionRef<absl::Status(BufferView)> function);

  const std::shared_ptr<DeviceContext> device_;
  Communicator* const host_;
  PinnedMemory memory_;  // Grows on demand.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_STAGED_COMMUNICATOR_H_
