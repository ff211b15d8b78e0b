#ifndef TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_
#define TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/backend/communicator.h"
#include "engine/base/clock.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/step_signals.h"

namespace tandem {

// Lets all ranks meet after the same step, to act on the signals that rank 0 sees. Each rank has its own
// line, used by its thread alone.
//
// Ranks also meet after each step that always has an action. Apart from that, no rank waits for another:
//
// - Threads of one process share a word (SharedWordOf) with the last step that any rank has
//   claimed. A rank claims its next steps before it takes them. If rank 0 sees a signal, it rings: it marks
//   the word, and all ranks meet after the last claimed step. So a signal takes effect after the step, or the
//   launch, of the rank that is ahead.
// - Ranks of several processes look about every tenth of a second, so the cost is small. At each meeting,
//   rank 0 tells the number of steps until the next look. Replicas that take their own steps look at
//   averagings only, where they wait for each other anyway.
class SignalLine {
 public:
  // All pointers must outlive this object.
  struct Options {
    Communicator* communicator = nullptr;
    const AveragingPolicy* averaging = nullptr;
    const Clock* clock = nullptr;
    // Returns the current signals. On rank 0 alone.
    std::function<StepSignals()> look;
    int64_t first_step = 0;    // The first step of this run.
    int64_t launch_steps = 1;  // StepSignals::launch_steps before the first meeting. Equal on all ranks.
  };
  explicit SignalLine(Options options);

  // Claims the steps up to `last`, which this rank takes next. After may have claimed them already.
  void Claim(int64_t last);

  // Call this after the last claimed step, `last`. If the ranks meet here, blocks until all ranks have
  // called, and returns the signals. Otherwise claims the steps up to `next_last` and returns nothing. `acts`
  // says that an action always follows the step. The arguments must be equal on all ranks.
  absl::StatusOr<std::optional<StepSignals>> After(int64_t last, bool acts, int64_t next_last);

  // Returns StepSignals::launch_steps of the last meeting.
  int64_t launch_steps() const { return launch_steps_; }

 private:
  // Returns whether the word is marked for a meeting that this rank has not joined.
  bool Rings(int64_t word) const;
  // As After, for threads of a process without an action. Returns whether the ranks meet.
  bool MeetsByWord(int64_t last, int64_t next_last);
  absl::StatusOr<StepSignals> Meet(int64_t last);
  // Returns the number of steps until the next look.
  int64_t Pace();

  const Options options_;
  std::atomic<int64_t>* const word_;  // Null if the ranks are in several processes.
  int64_t launch_steps_;
  int64_t met_;            // The step of the last meeting.
  int64_t next_look_ = 0;  // The step. For several processes.
  // For rank 0 of several processes: the time of the last look, and the number of steps it covered.
  absl::Duration look_time_ = absl::ZeroDuration();
  int64_t look_steps_ = 1;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_SIGNAL_LINE_H_
