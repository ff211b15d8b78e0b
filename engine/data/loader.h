#ifndef TANDEM_ENGINE_DATA_LOADER_H_
#define TANDEM_ENGINE_DATA_LOADER_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
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
// thread of its own. Next is called by one thread.
class Loader {
 public:
  // `dataset` and `sampler` outlive it. It will give the steps from `first_step` to before `steps`, counted
  // from 0 over all epochs, and keep up to `depth` of them ready; with a depth of 0 it has no thread and
  // gathers when asked.
  Loader(const Dataset* dataset, Sampler* sampler, int rank, int64_t first_step, int64_t steps, int depth);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next step's samples, which stay until the next call. At most steps - first_step calls.
  // std::bad_alloc where there is no memory for them, whichever thread finds that.
  Batch Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Of the batches that it holds.
  int64_t bytes() const;
  // Seconds that Next has taken in all.
  double wait_seconds() const { return wait_seconds_; }

 private:
  struct Slot {
    int64_t samples = 0;
    // Of bytes, whatever the types.
    Tensor input;
    Tensor target;
  };

  // Fills the slot of step `step`, counted from 0 over all epochs.
  void Fill(int64_t step);
  Slot& SlotOf(int64_t step) { return slots_[step % slots_.size()]; }
  void PrepareAhead() ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayPrepare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || prepared_ <= taken_ + depth_;
  }
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return prepared_ > taken_ || out_of_memory_; }

  const Dataset* const dataset_;
  Sampler* const sampler_;
  const int rank_;
  const int64_t first_step_;
  const int64_t steps_;
  const int depth_;
  // One for each step ahead and one that the caller reads: those of the steps from taken_ to taken_ + depth_.
  // A slot belongs to the thread until prepared_ counts it, then to the caller.
  std::vector<Slot> slots_;
  double wait_seconds_ = 0;

  Mutex mutex_;
  // The next step to fill, and the step that the caller reads.
  int64_t prepared_ ABSL_GUARDED_BY(mutex_);
  int64_t taken_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool out_of_memory_ ABSL_GUARDED_BY(mutex_) = false;  // The thread has ended.
  int64_t next_;                                        // The step that Next gives.
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_LOADER_H_
