#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "engine/backends/cuda/driver/emulated_give.h"
#include "engine/backends/cuda/driver/stream.h"
#include "engine/base/mutex.h"

namespace tandem::cuda {

// Work that a stream of the emulation waits for: a group's call whose other ranks have not made it yet.
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

// A point in a stream's deferred work.
struct EmulatedPoint {
  Stream stream = nullptr;
  bool reached = false;
};

// For tests of the order of work. Affects the streams that the calling thread creates next, which it alone
// uses and destroys. The first `streams` of them do their work as late as possible: when something waits for
// it. The others work as early as possible. With 0, later streams work at once again.
void DeferStreams(int streams);

// For tests. The calling thread's next CheckLaunches returns `error`, as after a launch that CUDA refused.
void RefuseLaunch(absl::Status error);

}  // namespace tandem::cuda

// A stream of the emulation. It does its work at once, or adds it to the current record. Recorded work must
// hold its data by value, like a GPU's launch.
struct CUstream_st {
  using Work = std::function<void()>;
  using Point = std::shared_ptr<tandem::cuda::EmulatedPoint>;

  CUstream_st();
  ~CUstream_st();

  // Does all deferred work, or the work up to the point. Then waits for pending work of other ranks.
  void Await(const tandem::cuda::EmulatedPoint* point = nullptr);
  // Defer work, or a wait for a point.
  void Defer(Work work) { deferred_.push_back({std::move(work), nullptr}); }
  void DeferUntil(Point point) { deferred_.push_back({nullptr, std::move(point)}); }
  // Returns whether new work must be deferred.
  bool defers() const { return is_late_ || !deferred_.empty(); }
  // Does all work that waits for no late stream.
  static void DoWhatMayBeDone();
  // Awaits all of the thread's streams since DeferStreams.
  static void AwaitAll();

  // The newest pending work of other ranks. Null before the first.
  std::shared_ptr<const tandem::cuda::PendingWork> pending;
  // The record, or null if work is done at once.
  std::unique_ptr<std::vector<Work>> record;

 private:
  // Work, or a wait for a point.
  struct Deferred {
    Work work;
    Point point;
  };
  void DoNext();

  bool is_late_ = false;
  std::deque<Deferred> deferred_;
};

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_
