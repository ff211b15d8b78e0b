#ifndef TANDEM_ENGINE_BACKEND_BEGUN_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKEND_BEGUN_REDUCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/backend/communicator.h"

namespace tandem {

// The running reductions of an executable, by position among its all_reduce steps. Thread-compatible.
class BegunReductions {
 public:
  // Sets the number of reductions. Call it before the first run.
  void Resize(size_t count) { begun_.assign(count, 0); }

  // Begins a sum over the ranks. Does nothing without a communicator or with a single rank.
  absl::Status Begin(size_t which, BufferView buffer, Communicator* communicator) {
    if (communicator == nullptr || communicator->world_size() == 1) return absl::OkStatus();
    absl::StatusOr<int64_t> begun = communicator->BeginAllReduce(buffer, ReduceOp::kSum);
    if (!begun.ok()) return begun.status();
    begun_[which] = *begun;
    if (*begun > newest_) newest_ = *begun;
    return absl::OkStatus();
  }

  // Returns when reduction `which` has ended.
  absl::Status Await(size_t which, Communicator* communicator) {
    if (communicator == nullptr || communicator->world_size() == 1) return absl::OkStatus();
    if (begun_[which] == newest_) newest_ = 0;
    return communicator->Await(begun_[which]);
  }

  // Returns when all running reductions have ended. They may be awaited again.
  absl::Status AwaitAll(Communicator* communicator) {
    return newest_ > 0 ? communicator->Await(newest_) : absl::OkStatus();
  }

  // Call it after each run, even a failed run. Returns when no reduction uses the memory any more.
  void End(Communicator* communicator) {
    if (newest_ > 0) (void)communicator->Await(newest_);
    newest_ = 0;
  }

 private:
  std::vector<int64_t> begun_;  // The numbers for Communicator::Await.
  int64_t newest_ = 0;          // The largest number that may still run, or 0.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_BEGUN_REDUCTIONS_H_
