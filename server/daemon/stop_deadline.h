#ifndef TANDEM_SERVER_DAEMON_STOP_DEADLINE_H_
#define TANDEM_SERVER_DAEMON_STOP_DEADLINE_H_

#include <thread>

#include "absl/time/time.h"
#include "engine/base/mutex.h"

namespace tandem {

// Ends the process with `exit_status` if the stop takes longer than `limit`, whatever the daemon's threads
// do: what was answered is durable, and the next daemon takes over as after a crash. Destroyed in time, it
// does nothing.
class StopDeadline {
 public:
  StopDeadline(absl::Duration limit, int exit_status);
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
