#ifndef TANDEM_ENGINE_DATA_LOADER_H_
#define TANDEM_ENGINE_DATA_LOADER_H_

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/data/dataset.h"
#include "engine/data/sampler.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A replica's samples of a step, as a step graph takes them. DatasetInfo has their types and shapes.
struct Batch {
  int64_t samples = 0;
  const void* input = nullptr;   // [samples, ...]
  const void* target = nullptr;  // [samples, ...]
};

// Gives a replica its samples, step after step and epoch after epoch. Prepares some steps ahead on its own
// thread. If gathering takes less than a hundredth of the time between calls, for some steps in a row, the
// caller gathers instead. Waking a thread costs more than that if all cores compute. The thread returns when
// gathering becomes expensive. Only one thread may call Next.
class Loader {
 public:
  // Gives the steps from `first_step` to before `end`, counted from 0 over all epochs. Keeps up to `depth` of
  // them ready. With depth 0 there is no thread, and Next gathers. `dataset`, `sampler` and `clock` must
  // outlive the loader.
  Loader(const Dataset* dataset, Sampler* sampler, int rank, int64_t first_step, int64_t end, int depth,
         const Clock* clock = Clock::Real());
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Returns the samples of the next step. They are valid until the next call. Allows end - first_step
  // calls. DATA_LOSS if the samples cannot be read, RESOURCE_EXHAUSTED if there was no memory to read them;
  // the next call returns the error again. Throws std::bad_alloc if there is no memory for the samples, in
  // either thread.
  absl::StatusOr<Batch> Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the bytes of its batches.
  int64_t bytes() const;
  // Returns the total time in Next, in seconds.
  double wait_seconds() const { return absl::ToDoubleSeconds(waited_); }

 private:
  struct Slot {
    int64_t samples = 0;
    absl::Duration gathering;  // The time it took.
    // Tensors of bytes, for any type.
    Tensor input;
    Tensor target;
  };

  // Fills the slot of step `step`, counted from 0 over all epochs. Errors as Next.
  absl::Status Fill(int64_t step);
  Slot& SlotOf(int64_t step) { return slots_[step % slots_.size()]; }
  // Waits until the thread has prepared the step. Returns false if the thread stops or fails first.
  bool AwaitPrepared(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts a thread that prepares the steps from `step` on. If the system has no thread left, the caller
  // gathers.
  void StartThread(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  void StopThread() ABSL_LOCKS_EXCLUDED(mutex_);
  void PrepareAhead(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // Decides who gathers the next steps. The caller took `slot` after computing for `between`.
  void Judge(const Slot& slot, absl::Duration between) ABSL_LOCKS_EXCLUDED(mutex_);
  bool MayPrepare() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || prepared_ <= taken_ + depth_;
  }
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return prepared_ > taken_ || ended_; }

  const Dataset* const dataset_;
  Sampler* const sampler_;
  const int rank_;
  const int64_t end_;
  const int depth_;
  const Clock* const clock_;
  // Slots of the steps from taken_ to taken_ + depth_: the caller's step and the steps ahead. A slot belongs
  // to the thread until prepared_ counts it, then to the caller.
  std::vector<Slot> slots_;
  absl::Duration waited_;
  // The return of the last Next. Infinite before the first.
  absl::Duration last_end_ = absl::InfiniteDuration();
  int contrary_steps_ = 0;  // Steps in a row that favour the other way to gather.

  Mutex mutex_;
  // The next step to fill, and the step that the caller reads.
  int64_t prepared_ ABSL_GUARDED_BY(mutex_);
  int64_t taken_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // The thread has ended.
  bool out_of_memory_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_;        // The next step of Next.
  std::thread thread_;  // Not joinable if the caller gathers.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_LOADER_H_
