#ifndef TANDEM_TESTS_FAULT_HISTORY_MODEL_H_
#define TANDEM_TESTS_FAULT_HISTORY_MODEL_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tandem/v1/event.pb.h"

namespace tandem::testing {

// Returns whether a job may change from a state to another, by the API's comments on JobState and on
// JobService's methods. This table is separate from the daemon's, so that it finds errors in the daemon's
// table. A new job starts from UNSPECIFIED.
bool MayMove(v1::JobState from, v1::JobState to);

// A job's log, collected from all watchers.
class JobLog {
 public:
  // Returns the problem of the event after the earlier events, or "".
  std::string Add(const v1::JobEvent& event);

  // Returns the problems of all events together.
  std::vector<std::string> Faults() const;

  // Returns the job's state when this was its newest event. Unset if no watcher saw enough.
  std::optional<v1::JobState> StateAt(int64_t sequence) const;
  // Returns the highest known number, or 0.
  int64_t newest() const { return events_.empty() ? 0 : events_.rbegin()->first; }
  // Returns whether every event up to the newest is known.
  bool is_whole() const { return newest() == static_cast<int64_t>(events_.size()); }
  const std::map<int64_t, v1::JobEvent>& events() const { return events_; }

 private:
  std::map<int64_t, v1::JobEvent> events_;
};

// Bounds of the number of a job's newest event at each time, from all answers.
class JobTimeline {
 public:
  // The number after a job's deletion: nothing is newer.
  static constexpr int64_t kGone = std::numeric_limits<int64_t>::max();

  // A client knew of this event at `time`.
  void AddKnown(absl::Duration time, int64_t sequence) { known_.emplace_back(time, sequence); }
  // A client that asked at `time` got this newest event: at `time` the newest event was not newer.
  void AddShown(absl::Duration time, int64_t sequence) { shown_.emplace_back(time, sequence); }
  // Call this after the last addition and before the first query.
  void Finish();

  // Returns the least number of the newest event at `time`. 0 if no event is known.
  int64_t Least(absl::Duration time) const;
  // Returns the largest number of the newest event at `time`. kGone if there is no bound.
  int64_t Most(absl::Duration time) const;

 private:
  // Sorted by time. After Finish, known_ has the highest number so far, and shown_ the lowest number from
  // there on.
  std::vector<std::pair<absl::Duration, int64_t>> known_;
  std::vector<std::pair<absl::Duration, int64_t>> shown_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_MODEL_H_
