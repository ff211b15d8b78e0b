#include "tests/fault/history_recorder.h"

#include <utility>

namespace tandem::testing {

absl::Duration HistoryRecorder::Now() const {
  return absl::FromChrono(std::chrono::steady_clock::now() - origin_);
}

void HistoryRecorder::Add(Call call) {
  MutexLock lock(&mutex_);
  call.number = static_cast<int>(history_.calls.size());
  history_.calls.push_back(std::move(call));
}

void HistoryRecorder::Note(std::string what) {
  const absl::Duration now = Now();
  MutexLock lock(&mutex_);
  history_.incidents.push_back({now, std::move(what)});
}

History HistoryRecorder::Take() {
  MutexLock lock(&mutex_);
  return std::move(history_);
}

}  // namespace tandem::testing
