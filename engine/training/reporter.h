#ifndef TANDEM_ENGINE_TRAINING_REPORTER_H_
#define TANDEM_ENGINE_TRAINING_REPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/judge.h"
#include "engine/training/measurement.h"
#include "engine/training/step_schedule.h"
#include "engine/training/trainer.h"
#include "engine/training/training_state.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Puts the replicas' measurements together, in the order of ranks, tells the observer of them, and says what
// follows from them. Whoever comes last with a measurement calls the observer, so its calls come one at a
// time. Thread-safe.
class Reporter {
 public:
  // `spec` has its defaults; `devices` are names in the order of ranks; `learning_rate`, which hears of each
  // epoch, `averaging`, `clock` and `observer`, which may be null, outlive it.
  Reporter(const v1::JobSpec& spec, const TrainingLength& length, std::vector<std::string> devices,
           bool validates, LearningRate* learning_rate, const AveragingPolicy* averaging, const Clock* clock,
           TrainerObserver* observer);

  // Goes on from a state that State gave to a reporter of the same job. Before Start.
  void Restore(const TrainingState& state) ABSL_LOCKS_EXCLUDED(mutex_);

  // Training begins. Before any measurement.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);

  // The loads by which replicas get their shares from here on, one each.
  void SetLoads(std::vector<double> loads) ABSL_LOCKS_EXCLUDED(mutex_);

  // What replica `rank` measured since the last report up to and with step `steps`, counted from 1 over all
  // epochs. All replicas call this for the same steps. OUT_OF_RANGE where the mean loss is not finite, or
  // gradients have not been for 200 steps in a row.
  absl::Status AddTraining(int rank, int64_t steps, const AfterStep& after, Measurement measurement)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What replica `rank` measured in validation, where `after` has one, after AddTraining. Where `after` is
  // finished it is one more. OUT_OF_RANGE as above.
  absl::Status AddValidation(int rank, int64_t steps, const AfterStep& after, Measurement measurement)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // What was done since the last report, or since what came after it, is neither training nor validation.
  void LeaveOut() ABSL_LOCKS_EXCLUDED(mutex_);

  // The following hold from when all replicas have added what they measured at a step until one adds anything
  // again.

  // Why training ends early after the step; reason UNSPECIFIED where it does not.
  TrainingOutcome EarlyEnd() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether the step brought the best result so far.
  bool Improved() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the epoch in progress, cut short, where training ends within it.
  void CloseEpoch() ABSL_LOCKS_EXCLUDED(mutex_);
  // All that is known after the step, for Restore.
  TrainingState State() const ABSL_LOCKS_EXCLUDED(mutex_);

  // What came of the training so far. At any time.
  v1::TrainingSummary Summary() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The replicas' measurements of one report as they come.
  struct Gathering {
    std::vector<Measurement> measurements;  // By rank.
    int count = 0;                          // Of those that have come.

    explicit Gathering(size_t replicas) : measurements(replicas) {}
    // True for the last replica to come; the next one begins anew.
    bool Add(int rank, Measurement measurement);
  };

  v1::Evaluation Evaluate(const Measurement& measurement) const;
  // Tells of a measurement to which no sample counts. `what` is "training" or "validation".
  void TellOfNoResult(const v1::Evaluation& evaluation, absl::string_view what, int64_t steps)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The epoch in progress as it is now; begins the next.
  v1::EpochSummary TakeEpoch(int64_t steps) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells of an epoch, after its validation where it has one.
  void FinishEpoch(v1::EpochSummary epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TrainingLength length_;
  const v1::Training training_spec_;
  const std::vector<std::string> devices_;
  const bool validates_;
  const LearningRate* const learning_rate_;
  const AveragingPolicy* const averaging_;
  const Clock* const clock_;
  TrainerObserver* const observer_;

  mutable Mutex mutex_;
  Judge judge_ ABSL_GUARDED_BY(mutex_);
  // Apart, as a replica may have validated before another has said how its training went.
  Gathering training_ ABSL_GUARDED_BY(mutex_);
  Gathering validation_ ABSL_GUARDED_BY(mutex_);
  std::vector<double> loads_ ABSL_GUARDED_BY(mutex_);
  int64_t reported_steps_ ABSL_GUARDED_BY(mutex_) = 0;
  // Steps in a row, up to the last report, that were left out as their gradients were not finite.
  int64_t steps_left_out_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Duration report_time_ ABSL_GUARDED_BY(mutex_);  // Of the last report, or of what came after it.
  // The epoch in progress so far.
  std::vector<Measurement> epoch_shares_ ABSL_GUARDED_BY(mutex_);
  absl::Duration epoch_duration_ ABSL_GUARDED_BY(mutex_);
  // A trained epoch that waits for its validation.
  v1::EpochSummary trained_epoch_ ABSL_GUARDED_BY(mutex_);

  // As TrainingState has it.
  std::optional<v1::Evaluation> ended_by_ ABSL_GUARDED_BY(mutex_);
  int64_t samples_ ABSL_GUARDED_BY(mutex_) = 0;  // That were trained, over all epochs.
  v1::TrainingSummary summary_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPORTER_H_
