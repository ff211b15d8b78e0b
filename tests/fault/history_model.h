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

// Whether a job may go from one state to another, as the API's comments on JobState and on JobService's
// methods say it; written out here once more, so that an error in the daemon's own table is found. A new job
// comes from UNSPECIFIED.
bool MayMove(v1::JobState from, v1::JobState to);

// One job's log, put together from what all watchers saw of it.
class JobLog {
 public:
  // What is wrong with the event in the light of those before, in words; empty where nothing is.
  std::string Add(const v1::JobEvent& event);

  // What the events, taken together, do that no log may do.
  std::vector<std::string> Faults() const;

  // The state that the job was in when this was its newest event; nothing where nobody saw enough.
  std::optional<v1::JobState> StateAt(int64_t sequence) const;
  // The highest number that was seen; 0: none.
  int64_t newest() const { return events_.empty() ? 0 : events_.rbegin()->first; }
  // Whether every event up to the newest was seen.
  bool is_whole() const { return newest() == static_cast<int64_t>(events_.size()); }
  const std::map<int64_t, v1::JobEvent>& events() const { return events_; }

 private:
  std::map<int64_t, v1::JobEvent> events_;
};

// Between which numbers a job's newest event was at a time, from what all clients were told.
class JobTimeline {
 public:
  // The number of a job that was deleted: nothing is newer.
  static constexpr int64_t kGone = std::numeric_limits<int64_t>::max();

  // Somebody knew of this event at `time`.
  void AddKnown(absl::Duration time, int64_t sequence) { known_.emplace_back(time, sequence); }
  // Who asked at `time` was told, later, that this was the newest: at `time` it was not newer.
  void AddShown(absl::Duration time, int64_t sequence) { shown_.emplace_back(time, sequence); }
  // After the last addition and before the first question.
  void Finish();

  // The newest event at `time` had at least this number; 0: nobody knows of any.
  int64_t Least(absl::Duration time) const;
  // It had at most this number; kGone: any.
  int64_t Most(absl::Duration time) const;

 private:
  // By time; once finished, with the highest (known) or the lowest (shown) number from the beginning, or from
  // the end, to there.
  std::vector<std::pair<absl::Duration, int64_t>> known_;
  std::vector<std::pair<absl::Duration, int64_t>> shown_;
};

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_FAULT_HISTORY_MODEL_H_
