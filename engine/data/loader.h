#ifndef TANDEM_ENGINE_DATA_LOADER_H_
#define TANDEM_ENGINE_DATA_LOADER_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/data/dataset.h"
#include "engine/data/sampler.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A replica's samples of one step, as a step graph takes them; DatasetInfo says of what types and shapes.
struct Batch {
  int64_t samples = 0;
  const void* input = nullptr;   // [samples, ...]
  const void* target = nullptr;  // [samples, ...]
};

// Gives one replica its samples, step after step and epoch after epoch, and prepares some steps ahead on a
// thread of its own. Where gathering takes less than a hundredth of the time between calls, for some steps in
// a row, the caller does it when it asks: waking a thread costs more than that where every core computes. The
// thread comes back when samples become dear. Next is called by one thread.
class Loader {
 public:
  // `dataset` and `sampler` outlive it. It will give the steps from `first_step` to before `steps`, counted
  // from 0 over all epochs, and keep up to `depth` of them ready; with a depth of 0 it has no thread and
  // gathers when asked. `clock` outlives it.
  Loader(const Dataset* dataset, Sampler* sampler, int rank, int64_t first_step, int64_t steps, int depth,
         const Clock* clock = Clock::Real());
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next step's samples, which stay until the next call. At most steps - first_step calls.
  // std::bad_alloc where there is no memory for them, whichever thread finds that.
  Batch Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the batches that it holds.
  int64_t bytes() const;
  // Seconds that Next has taken in all.
  double wait_seconds() const { return absl::ToDoubleSeconds(waited_); }

 private:
  struct Slot {
    int64_t samples = 0;
    absl::Duration gathering;  // What it took.
    // Of bytes, whatever the types.
    Tensor input;
    Tensor target;
  };

  // Fills the slot of step `step`, counted from 0 over all epochs.
  void Fill(int64_t step);
  Slot& SlotOf(int64_t step) { return slots_[step % slots_.size()]; }
  // Waits until the thread has prepared the step. False where it will not: it was to stop.
  bool AwaitPrepared(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Has a thread prepare the steps from `step` on.
  void StartThread(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  void StopThread() ABSL_LOCKS_EXCLUDED(mutex_);
  void PrepareAhead(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides who gathers from here on: `slot` was taken, and the caller had computed for `between` before.
  void Judge(const Slot& slot, absl::Duration between) ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayPrepare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || prepared_ <= taken_ + depth_;
  }
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return prepared_ > taken_ || ended_; }

  const Dataset* const dataset_;
  Sampler* const sampler_;
  const int rank_;
  const int64_t steps_;
  const int depth_;
  const Clock* const clock_;
  // One for each step ahead and one that the caller reads: those of the steps from taken_ to taken_ + depth_.
  // A slot belongs to the thread until prepared_ counts it, then to the caller.
  std::vector<Slot> slots_;
  absl::Duration waited_;
  absl::Duration last_end_ = absl::InfiniteDuration();  // When Next returned; infinite before the first time.
  int contrary_steps_ = 0;  // In a row, that speak for gathering in the other way.

  Mutex mutex_;
  // The next step to fill, and the step that the caller reads.
  int64_t prepared_ ABSL_GUARDED_BY(mutex_);
  int64_t taken_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // The thread has.
  bool out_of_memory_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_;        // The step that Next gives.
  std::thread thread_;  // None where the caller gathers.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_LOADER_H_
