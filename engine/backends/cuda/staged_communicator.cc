#include "engine/backends/cuda/staged_communicator.h"

#include "engine/base/status_macros.h"

namespace tandem::cuda {

absl::Status StagedCommunicator::Stage(BufferView buffer,
                                       absl::FunctionRef<absl::Status(BufferView)> function) {
  TANDEM_RETURN_IF_ERROR(UseDevice(device_->ordinal));
  const int64_t bytes = buffer.elements * SizeOf(buffer.dtype);
  if (memory_.bytes() < bytes) {
    TANDEM_ASSIGN_OR_RETURN(memory_, PinnedMemory::Allocate(bytes));
  }
  TANDEM_RETURN_IF_ERROR(Copy(memory_.data(), buffer.data, bytes, device_->stream->get()));
  TANDEM_RETURN_IF_ERROR(device_->stream->Synchronize());
  TANDEM_RETURN_IF_ERROR(function({memory_.data(), buffer.elements, buffer.dtype}));
  TANDEM_RETURN_IF_ERROR(Copy(buffer.data, memory_.data(), bytes, device_->stream->get()));
  return device_->stream->Synchronize();
}

absl::Status StagedCommunicator::AllReduce(BufferView buffer, ReduceOp op) {
  return Stage(buffer, [&](BufferView host) { return host_->AllReduce(host, op); });
}

absl::Status StagedCommunicator::Broadcast(BufferView buffer, int root) {
  return Stage(buffer, [&](BufferView host) { return host_->Broadcast(host, root); });
}

}  // namespace tandem::cuda
