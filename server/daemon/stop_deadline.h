#ifndef TANDEM_SERVER_DAEMON_STOP_DEADLINE_H_
#define TANDEM_SERVER_DAEMON_STOP_DEADLINE_H_

#include <functional>
#include <thread>

#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Ends the process if the stop takes longer than `limit`, even if other threads still work. Every answered
// call is durable, so the next daemon recovers as after a crash. Does nothing if destroyed in time.
class StopDeadline {
 public:
  // After `limit`, still waits while `must_wait` returns true. Then ends the process with the status that
  // `exit_status` returns. Both are called on another thread, `must_wait` several times per second.
  StopDeadline(absl::Duration limit, std::function<bool()> must_wait, std::function<int()> exit_status);
  ~StopDeadline();
  StopDeadline(const StopDeadline&) = delete;
  StopDeadline& operator=(const StopDeadline&) = delete;

 private:
  Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_STOP_DEADLINE_H_
