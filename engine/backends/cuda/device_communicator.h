#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_COMMUNICATOR_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backend/communicator.h"
#include "engine/backends/cuda/collective_communicator.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/backends/cuda/reduction_stream.h"

namespace tandem::cuda {

// A communicator for memory of GPUs. The ranks agree on each call through a communicator for host memory. The
// elements are added in the first possible way:
//
// - By the GPUs themselves, if all ranks are threads of this process and the GPUs can read each other's
//   memory. Ranks on the same GPU can. Each rank's GPU adds a slice of all elements, in the order of its
//   stream. No host waits for a GPU.
// - By NCCL.
// - Through the host's memory.
//
// Begun reductions run in a separate stream beside the device's work, except through the host's memory. Used
// by the device's thread, except Abort.
class DeviceCommunicator final : public Communicator {
 public:
  // `host` must outlive this object.
  DeviceCommunicator(std::shared_ptr<DeviceContext> device, Communicator* host)
      : device_(device), host_(host), reductions_(device), others_(std::move(device), host) {}

  int rank() const override { return host_->rank(); }
  int world_size() const override { return host_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override;
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override;
  absl::Status Await(int64_t begun) override;
  absl::Status Broadcast(BufferView buffer, int root) override;
  absl::Status Barrier() override { return host_->Barrier(); }
  void Abort(absl::Status status) override { others_.Abort(std::move(status)); }
  absl::Status status() const override { return host_->status(); }

 private:
  // The data of a rank for the others. Its own rank writes it before a meeting. All ranks read it until the
  // next meeting.
  enum class Call : uint8_t { kSum, kAverage, kBroadcast };
  struct Offer {
    Call call = Call::kSum;
    int root = 0;  // Of a broadcast.
    BufferView buffer;
    std::unique_ptr<Event> ready;
    std::unique_ptr<Event> done;
  };
  using Offers = std::vector<Offer>;

  // Finds out whether the ranks can use each other's memory. All ranks must call it together.
  absl::Status Meet();
  // Publishes this rank's call, and reads the other ranks' calls. The call is ready when `stream` reaches
  // this point. Returns whether the GPUs can do the reduction themselves.
  absl::StatusOr<bool> Show(Call call, int root, BufferView buffer, Stream stream);
  // Puts the published reduction into `stream`.
  absl::Status Reduce(BufferView buffer, ReduceOp op, Stream stream);
  // Ends the call. After it, `stream` waits until no other rank uses this rank's memory.
  absl::Status End(Stream stream);

  const std::shared_ptr<DeviceContext> device_;
  Communicator* const host_;
  ReductionStream reductions_;
  CollectiveCommunicator others_;  // For all calls that the GPUs do not do themselves.
  bool has_met_ = false;
  std::shared_ptr<Offers> offers_;  // Of all ranks. Null if they do not reach each other.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_COMMUNICATOR_H_
