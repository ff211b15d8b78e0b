#ifndef TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
#define TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_

#include <chrono>
#include <utility>

#include "engine/backend/communicator.h"

namespace tandem {

// Another communicator whose reductions' time is counted, waiting included.
class TimedCommunicator final : public Communicator {
 public:
  // `inner` outlives it.
  explicit TimedCommunicator(Communicator* inner) : inner_(inner) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status = inner_->AllReduce(buffer, op);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return status;
  }
  absl::Status Broadcast(BufferView buffer, int root) override { return inner_->Broadcast(buffer, root); }
  absl::Status Barrier() override { return inner_->Barrier(); }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  absl::Status status() const override { return inner_->status(); }

  // Seconds in AllReduce so far. From the thread that reduces.
  double seconds() const { return seconds_; }

 private:
  Communicator* const inner_;
  double seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
