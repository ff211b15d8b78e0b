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
  // Returns the time since the recorder was created.
  absl::Duration Now() const;

  // Adds an answered call.
  void Add(Call call);
  // Adds an incident at the present time.
  void Note(std::string what);

  // Returns the history so far.
  History Take();

 private:
  const std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();
  Mutex mutex_;
  History history_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_RECORDER_H_
