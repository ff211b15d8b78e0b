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

// Lets reductions of another communicator, for example over a network, overlap the caller's work. The inner
// communicator's calls return when they are done. A separate thread, started by the first reduction, runs
// begun reductions in order. Every other call waits for them, and then runs on the caller's thread. So the
// group sees all calls in their order, one at a time.
//
// The thread uses the floating-point modes of the caller (rounding, denormal numbers), so results are equal
// to the bit. The caller must await all begun reductions before it destroys this object.
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

  // Runs the begun reductions until the end. The body of thread_.
  void Reduce();
  // Waits until all begun reductions have ended.
  void WaitForAll();

  const std::unique_ptr<Communicator> inner_;

  Mutex mutex_;
  std::deque<Reduction> waiting_ ABSL_GUARDED_BY(mutex_);           // The first reduction is running.
  int64_t begun_ ABSL_GUARDED_BY(mutex_) = 0;                       // The number of begun reductions.
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;                        // The number of ended reductions.
  std::map<int64_t, absl::Status> failed_ ABSL_GUARDED_BY(mutex_);  // By number, until awaited.
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Accessed by the caller's thread alone.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_BACKGROUND_COMMUNICATOR_H_
