#ifndef TANDEM_SERVER_ADMISSION_MEMO_H_
#define TANDEM_SERVER_ADMISSION_MEMO_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/base/mutex.h"

namespace tandem {

// Remembers the newest 32 values, so that equal parts of many jobs are computed once. Thread-safe.
template <typename Value>
class Memo {
 public:
  // Returns the value of a key, if remembered.
  std::optional<Value> Find(const std::string& key) const {
    MutexLock lock(&mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? std::nullopt : std::optional<Value>(found->second);
  }

  void Add(const std::string& key, Value value) {
    MutexLock lock(&mutex_);
    if (!values_.emplace(key, std::move(value)).second) return;
    keys_.push_back(key);
    if (keys_.size() <= kMost) return;
    values_.erase(keys_.front());
    keys_.pop_front();
  }

 private:
  static constexpr size_t kMost = 32;

  mutable Mutex mutex_;
  std::map<std::string, Value> values_ ABSL_GUARDED_BY(mutex_);
  // Oldest first.
  std::deque<std::string> keys_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_SERVER_ADMISSION_MEMO_H_
