#ifndef TANDEM_ENGINE_COLLECTIVES_BACKGROUND_COMMUNICATOR_H_
#define TANDEM_ENGINE_COLLECTIVES_BACKGROUND_COMMUNICATOR_H_

#include <cfenv>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "engine/backend/communicator.h"
#include "engine/base/mutex.h"

namespace tandem {

// Gives a communicator whose calls return when all is done, such as one over a network, reductions that go on
// beside the caller's work: a thread of its own, which starts with the first of them, does one after the
// other. Every other call waits until none is left, and is done by the caller's thread, so that the group
// sees the calls in the order in which they were made, one at a time.
//
// The thread computes as the one that began the reduction does (rounding, denormal numbers), so that results
// are the same to the bit. What was begun is awaited before this is destroyed.
class BackgroundCommunicator final : public Communicator {
 public:
  explicit BackgroundCommunicator(std::unique_ptr<Communicator> inner);
  ~BackgroundCommunicator() override;

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  absl::Status AllReduce(BufferView buffer, ReduceOp op) override;
  absl::StatusOr<int64_t> BeginAllReduce(BufferView buffer, ReduceOp op) override;
  absl::Status Await(int64_t begun) override;
  absl::Status Broadcast(BufferView buffer, int root) override;
  absl::Status Barrier() override;
  void Abort(absl::Status status) override;
  absl::Status status() const override { return inner_->status(); }

 private:
  struct Reduction {
    BufferView buffer;
    ReduceOp op = ReduceOp::kSum;
    std::fenv_t modes = {};  // Of the caller's thread.
  };

  // Reduces what is begun, until the end.
  void Reduce();
  // Waits until none that has begun is left.
  void WaitForAll();

  const std::unique_ptr<Communicator> inner_;

  Mutex mutex_;
  std::deque<Reduction> waiting_ ABSL_GUARDED_BY(mutex_);           // The first is the one that goes on.
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;                       // How many.
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;                        // How many of them.
  std::map<int64_t, absl::Status> failed_ ABSL_GUARDED_BY(mutex_);  // By number; not awaited yet.
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Of the caller's thread.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_BACKGROUND_COMMUNICATOR_H_
