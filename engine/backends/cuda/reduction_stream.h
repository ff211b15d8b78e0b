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

// A second stream of a device, in which reductions go on beside what the first computes. The two wait for
// each other by events, the host for neither. Used by the device's thread, but for Reached.
class ReductionStream {
 public:
  explicit ReductionStream(std::shared_ptr<DeviceContext> device) : device_(std::move(device)) {}

  // The stream for the next reduction, which comes when all that the device's stream was given is done. The
  // first call makes it.
  absl::StatusOr<Stream> Begin();
  // The reduction is in the stream: the number by which it is awaited, from 1 on.
  absl::StatusOr<int64_t> End();
  // What the device's stream is given from now on waits for that reduction, and for all that began before it;
  // at once where it waits for it already.
  absl::Status Await(int64_t begun);
  absl::Status AwaitAll() { return Await(begun_); }

  // Whether the newest one has been done; true before the first. From any thread.
  absl::StatusOr<bool> Reached() const;

 private:
  struct GoingOn {
    int64_t number = 0;
    std::unique_ptr<Event> end;
  };

  const std::shared_ptr<DeviceContext> device_;
  std::unique_ptr<OwnedStream> stream_;  // Null before the first.
  std::unique_ptr<Event> ready_;         // What is to be reduced is there.
  int64_t begun_ = 0;
  std::deque<GoingOn> going_on_;              // Those that are not awaited yet.
  std::vector<std::unique_ptr<Event>> free_;  // To be recorded again.

  mutable Mutex mutex_;
  std::unique_ptr<Event> newest_ ABSL_GUARDED_BY(mutex_);  // As the end of the newest.
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_REDUCTION_STREAM_H_
