#ifndef TANDEM_ENGINE_COLLECTIVES_SLOW_LINK_H_
#define TANDEM_ENGINE_COLLECTIVES_SLOW_LINK_H_

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/backend/forwarding_communicator.h"
#include "engine/base/clock.h"

namespace tandem {

// Another communicator whose reductions take as long as over a slow network. A rank sleeps for the time of
// the bytes that each rank sends: 2 (n - 1) / n times the buffer's bytes among n ranks. Calls return when
// they are done. An abort wakes a sleeping rank within 10 ms.
class SlowLink final : public ForwardingCommunicator {
 public:
  SlowLink(std::unique_ptr<Communicator> inner, double bytes_per_second)
      : ForwardingCommunicator(std::move(inner)), bytes_per_second_(bytes_per_second) {}

  absl::Status AllReduce(BufferView buffer, ReduceOp op) override {
    const double bytes =
        static_cast<double>(buffer.elements * SizeOf(buffer.dtype)) * 2 * (world_size() - 1) / world_size();
    absl::Status status = inner().AllReduce(buffer, op);
    // The transfer begins after all ranks have made the call.
    const absl::Duration end = Clock::Real()->Elapsed() + absl::Seconds(bytes / bytes_per_second_);
    for (absl::Duration now = Clock::Real()->Elapsed(); now < end && status.ok();
         now = Clock::Real()->Elapsed()) {
      absl::SleepFor(std::min(end - now, absl::Milliseconds(10)));
      status = inner().status();
    }
    return status;
  }

 private:
  const double bytes_per_second_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_SLOW_LINK_H_
