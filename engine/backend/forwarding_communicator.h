#ifndef TANDEM_ENGINE_BACKEND_FORWARDING_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKEND_FORWARDING_COMMUNICATOR_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "engine/backend/communicator.h"

namespace tandem {

// Passes calls to another communicator. A subclass overrides the calls that it changes. BeginAllReduce and
// Await are the defaults of Communicator, so a begun reduction is this object's AllReduce.
class ForwardingCommunicator : public Communicator {
 public:
  // `inner` must outlive this object.
  explicit ForwardingCommunicator(Communicator* inner) : inner_(inner) {}
  explicit ForwardingCommunicator(std::unique_ptr<Communicator> inner)
      : owned_(std::move(inner)), inner_(owned_.get()) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override { return inner_->AllReduce(buffer, op); }
  absl::Status Broadcast(BufferView buffer, int root) override { return inner_->Broadcast(buffer, root); }
  absl::Status Barrier() override { return inner_->Barrier(); }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  absl::Status status() const override { return inner_->status(); }

 protected:
  Communicator& inner() const { return *inner_; }

 private:
  const std::unique_ptr<Communicator> owned_;  // Null if the caller owns the inner communicator.
  Communicator* const inner_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_FORWARDING_COMMUNICATOR_H_
