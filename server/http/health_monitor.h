#ifndef TANDEM_SERVER_HTTP_HEALTH_MONITOR_H_
#define TANDEM_SERVER_HTTP_HEALTH_MONITOR_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"

namespace tandem {

// How the daemon is.
struct Health {
  // OK: its main parts answer. Otherwise one of them has not for so long that only a restart will help.
  absl::Status alive;
  // OK: it serves calls and can keep what it promises. Otherwise why not; it may mend by itself, as where a
  // full disk gets space again. Never OK where `alive` is not.
  absl::Status ready;
};

// Asks the daemon's main parts from time to time whether they still do their work, on a thread of its own, so
// that a part that hangs holds up nobody who asks. Thread-safe.
class HealthMonitor {
 public:
  using Answer = std::function<void(const absl::Status&)>;
  // A part of the daemon.
  struct Part {
    // As in "the store".
    std::string name;
    // Has the part call `answer`, once, on any thread, when it has done a piece of its usual work: OK, or an
    // error that keeps the daemon from being ready. Must not block. `answer` may be called at any time, even
    // after the monitor is gone, or never.
    std::function<void(Answer answer)> ask;
  };
  struct Options {
    // Between two questions to a part.
    absl::Duration interval = absl::Seconds(5);
    // A part that owes an answer for longer hangs.
    absl::Duration patience = absl::Seconds(30);
    // OK while the daemon serves calls; otherwise why not.
    std::function<absl::Status()> serving;
    // Told after every round, on the monitor's thread; must not block.
    std::function<void(const Health&)> on_round;
    const Clock* clock = Clock::Real();
  };

  // Begins to ask at once. What the options and the parts refer to outlives the monitor.
  HealthMonitor(Options options, std::vector<Part> parts);
  // Waits for its thread, but for no part.
  ~HealthMonitor();
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  // As of now.
  Health Now() const;

 private:
  // What is known of a part; shared with answers that are still owed.
  struct State {
    Mutex mutex;
    // Since Clock::Elapsed() was this; infinite where none is owed.
    absl::Duration asked ABSL_GUARDED_BY(mutex) = absl::InfiniteDuration();
    // The last answer.
    absl::Status answer ABSL_GUARDED_BY(mutex);
  };

  void Run();
  // Asks the parts that owe no answer.
  void Ask();
  const Options options_;
  const std::vector<Part> parts_;
  std::vector<std::shared_ptr<State>> states_;

  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_HEALTH_MONITOR_H_
