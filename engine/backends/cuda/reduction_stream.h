#ifndef TANDEM_ENGINE_BACKENDS_CUDA_REDUCTION_STREAM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_REDUCTION_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backends/cuda/device_context.h"
#include "engine/base/mutex.h"

namespace tandem::cuda {

// A second stream of a device for reductions that overlap the work of the first. The streams wait for each
// other by events. The host never blocks. Used by the device's thread, except Reached.
class ReductionStream {
 public:
  explicit ReductionStream(std::shared_ptr<DeviceContext> device) : device_(std::move(device)) {}

  // Returns the stream for the next reduction. It starts after all earlier work of the device's stream. The
  // first call creates the stream.
  absl::StatusOr<Stream> Begin();
  // Ends the reduction's work in the stream. Returns its number for Await, from 1.
  absl::StatusOr<int64_t> End();
  // Makes later work of the device's stream wait for this reduction and all earlier reductions. Does nothing
  // if it already waits.
  absl::Status Await(int64_t begun);
  absl::Status AwaitAll() { return Await(begun_); }

  // Returns whether the newest reduction has ended. True before the first. Any thread may call it.
  absl::StatusOr<bool> Reached() const;

 private:
  struct GoingOn {
    int64_t number = 0;
    std::unique_ptr<Event> end;
  };

  const std::shared_ptr<DeviceContext> device_;
  std::unique_ptr<OwnedStream> stream_;  // Null before the first.
  std::unique_ptr<Event> ready_;         // The elements are ready to be reduced.
  int64_t begun_ = 0;
  std::deque<GoingOn> going_on_;              // Not awaited yet.
  std::vector<std::unique_ptr<Event>> free_;  // For reuse.

  mutable Mutex mutex_;
  std::unique_ptr<Event> newest_ ABSL_GUARDED_BY(mutex_);  // Recorded at the end of the newest reduction.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_REDUCTION_STREAM_H_
