#include "server/jobs/boot_clock.h"

#include <time.h>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "engine/base/env.h"

namespace tandem {
namespace {

class RealBootClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Duration Elapsed() const override {
    timespec time = {};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return absl::DurationFromTimespec(time);
  }
};

}  // namespace

const Clock* BootClock() {
  static const RealBootClock* const clock = new RealBootClock;
  return clock;
}

std::string BootId() {
  const absl::StatusOr<std::string> id = Env::Real()->ReadFile("/proc/sys/kernel/random/boot_id");
  return id.ok() ? std::string(absl::StripAsciiWhitespace(*id)) : "";
}

}  // namespace tandem
