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

// The steps of a training, counted over all epochs. The last epoch may be cut short.
struct TrainingLength {
  int64_t steps_per_epoch = 1;
  int64_t steps = 1;   // In all.
  int64_t epochs = 1;  // The number of begun epochs.
  // Added to a step's number before it is converted to an epoch. Not 0 only if training continues from a
  // checkpoint whose epochs had another number of steps.
  int64_t epoch_shift = 0;

  // Returns the length for the epochs or steps of `training`.
  static TrainingLength Of(const v1::Training& training, int64_t steps_per_epoch, int64_t epoch_shift = 0);
  // Returns the epoch, from 1, of the `steps`-th step of all.
  int64_t EpochOf(int64_t steps) const { return (steps + epoch_shift - 1) / steps_per_epoch + 1; }
  // Returns the number of earlier steps in the epoch of `step`.
  int64_t StepOfEpoch(int64_t step) const { return (step + epoch_shift) % steps_per_epoch; }
  // Returns the number of whole epochs after `steps` steps.
  int64_t WholeEpochs(int64_t steps) const { return (steps + epoch_shift) / steps_per_epoch; }
};

// The actions of all replicas after a step.
struct AfterStep {
  bool report = false;      // Report the measurements since the last report. True with any other action.
  bool ends_epoch = false;  // The current epoch ends, whole or cut short with the training.
  bool validate = false;
  bool checkpoint = false;
  // Training has ended by its measurements: the finished network is validated again.
  bool is_finished = false;
  // Why no step follows, apart from measurements: COMPLETED, TIME_LIMIT or PAUSE_REQUESTED. UNSPECIFIED if a
  // step follows.
  v1::StateReason end = v1::STATE_REASON_UNSPECIFIED;

  // Returns whether training ends for good, apart from measurements.
  bool ends_training() const {
    return end != v1::STATE_REASON_UNSPECIFIED && end != v1::STATE_REASON_PAUSE_REQUESTED;
  }
  // Returns whether there is an action other than a report.
  bool settles() const { return ends_epoch || validate || checkpoint || end != v1::STATE_REASON_UNSPECIFIED; }
};

// Signals of the clock and of commands.
struct StepSignals {
  bool report_is_due = false;
  bool checkpoint_is_due = false;
  bool time_is_up = false;
  bool pause = false;
};

// Decides the actions after each step. Most actions depend on the step's number. The first replica that has
// taken a step decides the actions that depend on the clock or on a command. Other replicas may be steps
// behind and get the same decision later. Steps count from 0 over all epochs. Thread-safe.
class StepSchedule {
 public:
  struct Options {
    TrainingLength length;
    int replicas = 1;
    bool validates = false;
    int64_t first_step = 0;     // The first step of this run.
    double seconds_before = 0;  // The time of earlier runs.
    // If it is true when the first replica has taken a step, training pauses after this step. Must outlive
    // the schedule.
    const std::atomic<bool>* pause = nullptr;
    const Clock* clock = nullptr;  // Must outlive the schedule.
    // Returns whether a report always follows a step. Null: never.
    std::function<bool(int64_t step)> reports_after;
  };
  // `spec` has its defaults.
  StepSchedule(const v1::JobSpec& spec, Options options);

  // Begins the first step.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Continues after validation. The time before the call does not count for reports.
  void Restart() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the current signals of the clock and of commands.
  StepSignals Look() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the number of steps that a replica takes from `step` on before it calls After: from 1 to `most`.
  // The steps end where an action always follows. Each replica calls this before it takes the steps. The
  // first replica's `most` counts for all.
  int64_t StepsFrom(int64_t step, int64_t most) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the actions after `step`. Each replica calls this after the last step of each StepsFrom, in
  // order.
  AfterStep After(int64_t step) ABSL_LOCKS_EXCLUDED(mutex_);
  // As After, with signals that all replicas received, in place of the first replica's own look.
  AfterStep After(int64_t step, const StepSignals& signals) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A decision, and the number of replicas that have not asked for it.
  struct Decided {
    AfterStep after;
    int left = 0;
  };

  // Returns whether an interval ends with step number `steps`, from 1.
  template <typename Interval>
  bool IsDue(const Interval& interval, int64_t steps) const;
  // Returns whether the step always has a report and no other action.
  bool ReportsAfter(int64_t steps) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns whether step number `steps` always has an action.
  bool SettlesAfter(int64_t steps) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StepSignals LookLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // If `signals` is null, the first replica looks.
  AfterStep Take(int64_t step, const StepSignals* signals) ABSL_LOCKS_EXCLUDED(mutex_);
  AfterStep Decide(int64_t step, const StepSignals& signals) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const v1::ReportInterval report_;
  const v1::ValidationInterval validation_;
  const v1::Checkpointing checkpoints_;
  const absl::Duration time_limit_;
  const Options options_;

  Mutex mutex_;
  std::map<int64_t, Decided> decided_ ABSL_GUARDED_BY(mutex_);  // By step.
  // The number of steps from a step on, and the number of replicas that have not asked for it.
  struct Group {
    int64_t steps = 1;
    int left = 0;
  };
  std::map<int64_t, Group> groups_ ABSL_GUARDED_BY(mutex_);  // By their first step.
  int64_t reported_steps_ ABSL_GUARDED_BY(mutex_);
  absl::Duration start_time_ ABSL_GUARDED_BY(mutex_);
  absl::Duration last_time_ ABSL_GUARDED_BY(mutex_);  // Of the last report.
  // Of the last checkpoint that the clock triggered.
  absl::Duration checkpoint_time_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_STEP_SCHEDULE_H_
