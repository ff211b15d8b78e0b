#ifndef TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_
#define TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Steps of a training, counted over all epochs. The last epoch may be cut short.
struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;   // In all.
  int64_t epochs = 1;  // That are begun.
  // By how much a step's number would be larger if epochs had always had so many steps: not 0 only where a
  // training goes on from a checkpoint whose epochs had others. Epochs go by that number.
  int64_t epoch_shift = 0;

  // Of the epochs or steps that `training` gives.
  static TrainingLength Of(const v1::Training& training, int64_t steps_per_epoch, int64_t epoch_shift = 0);
  // The epoch, from 1, of the step that is the `steps`-th of all.
  int64_t EpochOf(int64_t steps) const { return (steps + epoch_shift - 1) / steps_per_epoch + 1; }
  // How many of its epoch's steps come before `step`.
  int64_t StepOfEpoch(int64_t step) const { return (step + epoch_shift) % steps_per_epoch; }
  // How many epochs are whole after `steps` steps.
  int64_t WholeEpochs(int64_t steps) const { return (steps + epoch_shift) / steps_per_epoch; }
};

// What all replicas do after a step.
struct AfterStep {
  bool report = false;      // Say what was measured since the last report. With any of the others.
  bool ends_epoch = false;  // The epoch in progress ends, whole or, with the training, cut short.
  bool validate = false;
  bool checkpoint = false;
  // Training has ended, for what was measured: the finished network is validated once more.
  bool is_finished = false;
  // Why no step follows, whatever is measured: COMPLETED, TIME_LIMIT or PAUSE_REQUESTED. UNSPECIFIED where
  // one does.
  v1::StateReason end = v1::STATE_REASON_UNSPECIFIED;

  // Whether training ends, whatever is measured, and does not go on another time.
  bool ends_training() const {
    return end != v1::STATE_REASON_UNSPECIFIED && end != v1::STATE_REASON_PAUSE_REQUESTED;
  }
  // Whether there is more to do than a report.
  bool settles() const { return ends_epoch || validate || checkpoint || end != v1::STATE_REASON_UNSPECIFIED; }
};

// What depends on the clock, or on a command.
struct StepSignals {
  bool report_is_due = false;
  bool checkpoint_is_due = false;
  bool time_is_up = false;
  bool pause = false;
};

// What follows each step. The most of it follows from the step's number. What depends on the clock or on a
// command is decided by the first replica that has taken the step; the others, which may be steps behind it,
// learn of it when they have. Steps count from 0 over all epochs. Thread-safe.
class StepSchedule {
 public:
  struct Options {
    TrainingLength length;
    int replicas = 1;
    bool validates = false;
    int64_t first_step = 0;     // That training begins with.
    double seconds_before = 0;  // That it has taken already.
    // Where it is true when the first replica has taken a step, training is paused after that. Outlives the
    // schedule.
    const std::atomic<bool>* pause = nullptr;
    const Clock* clock = nullptr;  // Outlives the schedule.
    // Whether there is a report after a step in any case; null for never.
    std::function<bool(int64_t step)> reports_after;
  };
  // `spec` has its defaults.
  StepSchedule(const v1::JobSpec& spec, Options options);

  // The first step begins.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Steps go on after validation: the time until then does not count for reports.
  void Restart() ABSL_LOCKS_EXCLUDED(mutex_);

  // What the clock and commands say now.
  StepSignals Look() ABSL_LOCKS_EXCLUDED(mutex_);

  // How many steps from `step` on a replica takes before it asks what follows: from 1 to `most`, and none
  // beyond one after which something follows in any case. Each replica asks before it takes them; the `most`
  // of the first one counts for all.
  int64_t StepsFrom(int64_t step, int64_t most) ABSL_LOCKS_EXCLUDED(mutex_);

  // What follows `step`. Each replica asks once for each last step that StepsFrom gives, in their order, when
  // it has taken it.
  AfterStep After(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same with signals that all replicas were given alike, in place of those that the first one sees.
  AfterStep After(int64_t step, const StepSignals& signals) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // What has been decided, and by how many replicas it is still to be asked for.
  struct Decided {
    AfterStep after;
    int left = 0;
  };

  // Whether an interval ends with step number `steps`, from 1.
  template <typename Interval>
  bool IsDue(const Interval& interval, int64_t steps) const;
  // Whether there is a report after it whatever the clock says, and nothing else follows.
  bool ReportsAfter(int64_t steps) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether something follows step number `steps` whatever the clock and commands say.
  bool SettlesAfter(int64_t steps) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StepSignals LookLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `signals` are null where the first replica is to look.
  AfterStep Take(int64_t step, const StepSignals* signals) ABSL_LOCKS_EXCLUDED(mutex_);
  AfterStep Decide(int64_t step, const StepSignals& signals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const v1::ReportInterval report_;
  const v1::ValidationInterval validation_;
  const v1::Checkpointing checkpoints_;
  const absl::Duration time_limit_;
  const Options options_;

  Mutex mutex_;
  std::map<int64_t, Decided> decided_ ABSL_GUARDED_BY(mutex_);  // By step.
  // How many steps are taken from a step on, and by how many replicas that is still to be asked for.
  struct Group {
    int64_t steps = 1;
    int left = 0;
  };
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);  // By their first step.
  int64_t reported_steps_ ABSL_GUARDED_BY(mutex_);
  absl::Duration start_time_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_time_ ABSL_GUARDED_BY(mutex_);        // Of a report.
  absl::Duration checkpoint_time_ ABSL_GUARDED_BY(mutex_);  // Of the last that the clock asked for.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_
