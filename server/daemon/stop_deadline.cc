#include "server/daemon/stop_deadline.h"

#include <unistd.h>

#include "third_party/spdlog/log.h"

namespace tandem {

StopDeadline::StopDeadline(absl::Duration limit, int exit_status)
    : thread_([this, limit, exit_status] {
        {
          MutexLock lock(&mutex_);
          if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), limit)) return;
        }
        spdlog::warn("stopping took longer than {}: the daemon ends now and does not wait for running work",
                     absl::FormatDuration(limit));
        spdlog::default_logger()->flush();
        // Run no destructors, because they would wait for the threads.
        _exit(exit_status);
      }) {}

StopDeadline::~StopDeadline() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

}  // namespace tandem
