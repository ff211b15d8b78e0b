#ifndef TANDEM_TESTS_FAULT_HISTORY_RECORDER_H_
#define TANDEM_TESTS_FAULT_HISTORY_RECORDER_H_

#include <chrono>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/mutex.h"
#include "tests/fault/history.h"

namespace tandem::testing {

// Collects a history from many threads. Thread-safe.
class HistoryRecorder {
 public:
  // Since the recorder was made.
  absl::Duration Now() const;

  // Adds a call that has been answered.
  void Add(Call call);
  // Adds what happens now.
  void Note(std::string what);

  // All so far.
  History Take();

 private:
  const std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  Mutex mutex_;
  History history_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_RECORDER_H_
