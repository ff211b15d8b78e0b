#ifndef TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
#define TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
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
    return Timed(/*always=*/false, [&] { return inner_->AllReduce(buffer, op); });
  }
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override {
    absl::StatusOr<int64_t> begun = absl::UnavailableError("not begun");
    const absl::Status status = Timed(/*always=*/false, [&] {
      begun = inner_->BeginAllReduce(buffer, op);
      return begun.status();
    });
    if (status.ok()) return begun;
    // The caller never hears its number.
    if (begun.ok()) inner_->Await(*begun).IgnoreError();
    return status;
  }
  // What was begun is awaited even where the device has failed: nobody else would.
  absl::Status Await(int64_t begun) override {
    return Timed(/*always=*/true, [&] { return inner_->Await(begun); });
  }
  absl::Status Broadcast(BufferView buffer, int root) override { return inner_->Broadcast(buffer, root); }
  absl::Status Barrier() override { return inner_->Barrier(); }
  void Abort(absl::Status status) override { inner_->Abort(std::move(status)); }
  absl::Status status() const override { return inner_->status(); }

  // Seconds in these three so far. From the thread that reduces.
  double seconds() const { return seconds_; }

 private:
  // The first error of the device, the call and the device after it. `always`: the call is made although the
  // device has failed before it.
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

  Communicator* const inner_;
  Device* const device_;
  bool waits_ = false;
  double seconds_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_TIMED_COMMUNICATOR_H_
