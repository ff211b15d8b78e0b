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

// The daemon's health.
struct Health {
  // OK if all main parts answer. Otherwise a part has not answered for so long that only a restart helps.
  absl::Status alive;
  // OK if the daemon serves calls and can store their results. Otherwise the reason, which may go away, for
  // example when a full disk gets room. Never OK if `alive` is not OK.
  absl::Status ready;
};

// Checks the daemon's main parts periodically, on its own thread, so that a hanging part blocks no caller of
// Now. Thread-safe.
class HealthMonitor {
 public:
  using Answer = std::function<void(const absl::Status&)>;
  // A main part of the daemon.
  struct Part {
    // For example "the store".
    std::string name;
    // Makes the part do a piece of its usual work and then call `answer` once, on any thread. An error in
    // `answer` means that the daemon is not ready. Must not block. `answer` may be called late, after the
    // monitor's end, or never.
    std::function<void(Answer answer)> ask;
    // Returns true while a long piece of work delays the answer. The part then does not count as hanging,
    // but the daemon is not ready. Null: never.
    std::function<bool()> is_busy = nullptr;
  };
  struct Options {
    // The time between two checks of a part.
    absl::Duration interval = absl::Seconds(5);
    // A part that does not answer for longer hangs.
    absl::Duration patience = absl::Seconds(30);
    // Returns OK while the daemon serves calls; otherwise the reason.
    std::function<absl::Status()> serving;
    // Called after every round, on the monitor's thread. Must not block.
    std::function<void(const Health&)> on_round;
    const Clock* clock = Clock::Real();
  };

  // Starts the checks. All objects in the options and parts must outlive the monitor.
  HealthMonitor(Options options, std::vector<Part> parts);
  // Waits for the monitor's thread, but for no part.
  ~HealthMonitor();
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  // Returns the current health.
  Health Now() const;

 private:
  // The state of a part, shared with its outstanding answers.
  struct State {
    Mutex mutex;
    // The time of the outstanding question, by Clock::Elapsed(). Infinite if none.
    absl::Duration asked ABSL_GUARDED_BY(mutex) = absl::InfiniteDuration();
    // The last answer.
    absl::Status answer ABSL_GUARDED_BY(mutex);
  };

  void Run();
  // Asks the parts without an outstanding question.
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
