#ifndef TANDEM_ENGINE_BACKEND_BEGUN_REDUCTIONS_H_
#define TANDEM_ENGINE_BACKEND_BEGUN_REDUCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/backend/communicator.h"

namespace tandem {

// The reductions of an executable that go on while it computes, by their position among its all_reduce steps.
// Thread-compatible.
class BegunReductions {
 public:
  // Before runs: how many there are.
  void Resize(size_t count) { begun_.assign(count, 0); }

  // Sums over the ranks; a null communicator, or one of one rank, leaves the elements as they are.
  absl::Status Begin(size_t which, BufferView buffer, Communicator* communicator) {
    if (communicator == nullptr || communicator->world_size() == 1) return absl::OkStatus();
    absl::StatusOr<int64_t> begun = communicator->BeginAllReduce(buffer, ReduceOp::kSum);
    if (!begun.ok()) return begun.status();
    begun_[which] = *begun;
    if (*begun > newest_) newest_ = *begun;
    return absl::OkStatus();
  }

  absl::Status Await(size_t which, Communicator* communicator) {
    if (communicator == nullptr || communicator->world_size() == 1) return absl::OkStatus();
    if (begun_[which] == newest_) newest_ = 0;
    return communicator->Await(begun_[which]);
  }

  // Awaits all that go on. They may be awaited again.
  absl::Status AwaitAll(Communicator* communicator) {
    return newest_ > 0 ? communicator->Await(newest_) : absl::OkStatus();
  }

  // After each run, also one that failed: what is left of it has ended, and touches the memory no more.
  void End(Communicator* communicator) {
    if (newest_ > 0) (void)communicator->Await(newest_);
    newest_ = 0;
  }

 private:
  std::vector<int64_t> begun_;  // The numbers by which they are awaited.
  int64_t newest_ = 0;          // The largest of those that may still go on; 0 where there is none.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_BEGUN_REDUCTIONS_H_
