#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_

#include <memory>

#include "absl/base/thread_annotations.h"
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

}  // namespace tandem::cuda

// A stream of the emulation. All else is done at once.
struct CUstream_st {
  // What was put in last of this kind; null before.
  std::shared_ptr<const tandem::cuda::PendingWork> pending;

  void Await() const {
    if (pending != nullptr) pending->Await();
  }
};

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_STREAM_H_
