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

// A communicator for memory of GPUs on top of one for the host's, by which the ranks meet. Where all of them
// are threads of this process and their GPUs reach each other's memory (replicas on one GPU do), each rank's
// GPU adds its slice of everyone's elements, in the order of its stream, and no host waits for a GPU;
// otherwise NCCL does it, or, without that, what is reduced passes through the host's memory. What was begun
// goes on in a stream of its own, beside what the device computes, but for what passes through the host.
// Used by the device's thread, but for Abort.
class DeviceCommunicator final : public Communicator {
 public:
  // `host` outlives it.
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
  // What a rank shows the others. Written by its own rank before they meet, and read by all until they meet
  // again.
  enum class Call : uint8_t { kSum, kAverage, kBroadcast };
  struct Offer {
    Call call = Call::kSum;
    int root = 0;  // Of a broadcast.
    BufferView buffer;
    std::unique_ptr<Event> ready;
    std::unique_ptr<Event> done;
  };
  using Offers = std::vector<Offer>;

  // Finds out whether the ranks can work on each other's memory: all of them call it together.
  absl::Status Meet();
  // Shows what the rank brings when `stream` comes to this, and looks at what the others do. Says whether the
  // devices can do it.
  absl::StatusOr<bool> Show(Call call, int root, BufferView buffer, Stream stream);
  // Puts the reduction of what was shown into `stream`.
  absl::Status Reduce(BufferView buffer, ReduceOp op, Stream stream);
  // Ends it: returns when no other rank will touch this one's memory before the stream's work goes on.
  absl::Status End(Stream stream);

  const std::shared_ptr<DeviceContext> device_;
  Communicator* const host_;
  ReductionStream reductions_;
  CollectiveCommunicator others_;  // For all that the GPUs do not do among themselves.
  bool has_met_ = false;
  std::shared_ptr<Offers> offers_;  // Of all ranks; null where they do not reach each other.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DEVICE_COMMUNICATOR_H_
