#ifndef TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
#define TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/device.h"
#include "engine/backend/forwarding_communicator.h"

namespace tandem {

// Passes calls to another communicator and measures their time, including waits. If reductions overlap the
// caller's work, only the caller's wait counts. SetWaits is for devices that run their work later. Without
// it, the device's own work would count as reduction, or not at all.
class TimedCommunicator final : public ForwardingCommunicator {
 public:
  // Both must outlive this object.
  TimedCommunicator(Communicator* inner, Device* device) : ForwardingCommunicator(inner), device_(device) {}

  // Sets whether each reduction waits for the device before and after it.
  void SetWaits(bool waits) { waits_ = waits; }

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    return Timed(/*always=*/false, [&] { return inner().AllReduce(buffer, op); });
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    absl::StatusOr<int64_t> begun = absl::UnavailableError("not begun");
    const absl::Status status = Timed(/*always=*/false, [&] {
      begun = inner().BeginAllReduce(buffer, op);
      return begun.status();
    });
    if (status.ok()) return begun;
    // The caller never receives the number, so this call awaits it.
    if (begun.ok()) inner().Await(*begun).IgnoreError();
    return status;
  }
  // A begun reduction is awaited even if the device has failed, because nobody else would await it.
  absl::Status Await(int64_t begun) override {
    return Timed(/*always=*/true, [&] { return inner().Await(begun); });
  }

  // Returns the seconds in these three calls so far. Call it from the thread that reduces.
  double seconds() const { return seconds_; }

 private:
  // Runs `call` between two waits for the device. Returns the first error of the three. `always`: makes the
  // call even if the first wait failed.
  absl::Status Timed(bool always, absl::FunctionRef<absl::Status()> call) {
    absl::Status first = Settle();
    if (!first.ok() && !always) return first;
    const auto begin = std::chrono::steady_clock::now();
    first.Update(call());
    first.Update(Settle());
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return first;
  }
  absl::Status Settle() const { return waits_ ? device_->Wait() : absl::OkStatus(); }

  Device* const device_;
  bool waits_ = false;
  double seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
