#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/backends/cuda/driver/emulated_give.h"
#include "engine/backends/cuda/driver/stream.h"
#include "engine/base/mutex.h"

namespace tandem::cuda {

// Something that a stream of the emulation waits for: a call of a group whose other ranks have not come yet.
// Thread-safe.
class PendingWork {
 public:
  void End() {
    MutexLock lock(&mutex_);
    ended_ = true;
  }
  bool ended() const {
    MutexLock lock(&mutex_);
    return ended_;
  }
  void Await() const {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&ended_));
  }

 private:
  mutable Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// A point in a stream's work that is done later.
struct EmulatedPoint {
  Stream stream = nullptr;
  bool reached = false;
};

// For tests of the order of work: of the streams that the calling thread makes next, which it alone uses and
// destroys, the first so many do what they are given as late as they may, when something waits for it, and
// the others as early as they may. 0: those that it makes from then on do everything at once again.
void DeferStreams(int streams);

}  // namespace tandem::cuda

// A stream of the emulation: what it is given it does at once, or puts into the record that is being made.
// What is recorded must hold by value what it works with, as a GPU's launches do.
struct CUstream_st {
  using Work = std::function<void()>;
  using Point = std::shared_ptr<tandem::cuda::EmulatedPoint>;

  CUstream_st();
  ~CUstream_st();

  // Does all that is to be done, or as much as takes it to the point, and waits for what others have to end.
  void Await(const tandem::cuda::EmulatedPoint* point = nullptr);
  // Puts in what is to be done later; of a point, that it is waited for.
  void Defer(Work work) { deferred_.push_back({std::move(work), nullptr}); }
  void DeferUntil(Point point) { deferred_.push_back({nullptr, std::move(point)}); }
  // Whether it does nothing at once.
  bool defers() const { return is_late_ || !deferred_.empty(); }
  // Does what waits for no late stream.
  static void DoWhatMayBeDone();
  // All those of the thread that are made since DeferStreams.
  static void AwaitAll();

  // What was put in last that others have to end; null before.
  std::shared_ptr<const tandem::cuda::PendingWork> pending;
  // Of work that is recorded; null where it is done.
  std::unique_ptr<std::vector<Work>> record;

 private:
  // Work, or a wait.
  struct Deferred {
    Work work;
    Point point;
  };
  void DoNext();

  bool is_late_ = false;
  std::deque<Deferred> deferred_;
};

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_
