#include "engine/base/clock.h"

#include <chrono>

namespace tandem {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration Elapsed() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

const Clock* Clock::Real() {
  static const RealClock* const clock = new RealClock;
  return clock;
}

}  // namespace tandem
