#include "server/daemon/stop_deadline.h"

#include <unistd.h>

#include <utility>

#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// The time between two calls of `must_wait`.
constexpr absl::Duration kInterval = absl::Milliseconds(100);

}  // namespace

StopDeadline::StopDeadline(absl::Duration limit, std::function<bool()> must_wait,
                           std::function<int()> exit_status)
    : thread_([this, limit, must_wait = std::move(must_wait), exit_status = std::move(exit_status)] {
        absl::Duration wait = limit;
        do {
          MutexLock lock(&mutex_);
          if (mutex_.AwaitWithTimeout(absl::Condition(&stopped_), wait)) return;
          wait = kInterval;
        } while (must_wait());
        spdlog::warn("stopping took longer than {}: the daemon ends now and does not wait for running work",
                     absl::FormatDuration(limit));
        spdlog::default_logger()->flush();
        // Run no destructors, because they would wait for the threads.
        _exit(exit_status());
      }) {}

StopDeadline::~StopDeadline() {
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

}  // namespace tandem
