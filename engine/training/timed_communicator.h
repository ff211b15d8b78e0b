#ifndef TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
#define TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_

#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "engine/backend/communicator.h"
#include "engine/backend/device.h"

namespace tandem {

// Another communicator whose reductions' time is counted, waiting included: what of it the caller has to wait
// for, where they go on beside its work. A device that does later what it is given is waited for on demand,
// as otherwise its own work would be counted among them, or nowhere.
class TimedCommunicator final : public Communicator {
 public:
  // Both outlive it.
  TimedCommunicator(Communicator* inner, Device* device) : inner_(inner), device_(device) {}

  // Whether the device is waited for before and after each reduction from now on.
  void SetWaits(bool waits) { waits_ = waits; }

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return Timed([&] { return inner_->AllReduce(buffer, op); });
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    return Timed([&] { return inner_->BeginAllReduce(buffer, op); });
  }
  absl::Status Await(int64_t begun) override {
    return Timed([&] { return inner_->Await(begun); });
  }
  absl::Status Broadcast(BufferView buffer, int root) override { return inner_->Broadcast(buffer, root); }
  absl::Status Barrier() override { return inner_->Barrier(); }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  absl::Status status() const override { return inner_->status(); }

  // Seconds in these three so far. From the thread that reduces.
  double seconds() const { return seconds_; }

 private:
  template <typename Call>
  auto Timed(const Call& call) -> decltype(call()) {
    if (absl::Status status = Settle(); !status.ok()) return status;
    const auto begin = std::chrono::steady_clock::now();
    auto result = call();
    const absl::Status settled = Settle();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (result.ok() && !settled.ok()) return settled;
    return result;
  }
  absl::Status Settle() const { return waits_ ? device_->Wait() : absl::OkStatus(); }

  Communicator* const inner_;
  Device* const device_;
  bool waits_ = false;
  double seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
