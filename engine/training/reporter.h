#ifndef TANDEM_ENGINE_TRAINING_REPORTER_H_
#define TANDEM_ENGINE_TRAINING_REPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/schedules/learning_rate.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/judge.h"
#include "engine/training/measurement.h"
#include "engine/training/step_plan.h"
#include "engine/training/trainer.h"
#include "engine/training/training_length.h"
#include "engine/training/training_state.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Combines the replicas' measurements in the order of ranks, reports them to the observer, and draws
// conclusions. Thread-compatible.
class Reporter {
 public:
  // `spec` has its defaults. `devices` are names in the order of ranks. The reporter calls
  // LearningRate::EndEpoch of `learning_rate`. `averaging` may have the loads of any moment. All pointers
  // must outlive this object.
  Reporter(const v1::JobSpec& spec, const TrainingLength& length, std::vector<std::string> devices,
           bool validates, LearningRate* learning_rate, const AveragingPolicy* averaging, const Clock* clock,
           TrainerObserver* observer);

  // Continues from the State of a reporter of the same job. Call it before Start.
  void Restore(const TrainingState& state);

  // Begins training. Call it before any measurement.
  void Start();

  // Sets the replicas' loads from here on, an entry for each.
  void SetLoads(std::vector<double> loads);
  // Sets the deviation by which targets were divided. Results are reported in the scale of the data. Call it
  // before any measurement is added. Default: 0, targets of the data's scale.
  void SetTargetDeviation(double deviation) { target_deviation_ = deviation; }

  // Sets the classes' names, in the order of labels. Call it before any validation is added. Default: no
  // names.
  void SetClassNames(std::vector<std::string> names) { class_names_ = std::move(names); }

  // Takes the replicas' measurements from the last report to step `steps`, counted from 1 over all epochs.
  // OUT_OF_RANGE if the mean loss is not finite, or if gradients were not finite for 200 steps in a row.
  absl::Status AddTraining(int64_t steps, const AfterStep& after, const std::vector<Measurement>& replicas);

  // Takes the replicas' validations. Call it after AddTraining if `after` has a validation, and once more if
  // the finished network is validated again. OUT_OF_RANGE if the loss is not finite.
  absl::Status AddValidation(int64_t steps, const AfterStep& after, const std::vector<Measurement>& replicas);

  // Excludes the time since the last report from the times of training and validation.
  void LeaveOut();

  // Returns why training ends early after the step, or the reason UNSPECIFIED.
  TrainingOutcome EarlyEnd() const;
  // Returns whether the step brought the best result so far.
  bool Improved() const;
  // Returns whether the best result so far is of this step. After a restart, the step may measure again the
  // result of a kept model that was written before the restart. Then the step brings no better result.
  bool IsBest() const;
  // Ends the current epoch early. Call it if training ends within the epoch.
  void CloseEpoch();
  // Returns the whole state after the step, for Restore.
  TrainingState State() const;

  // Returns the results so far.
  v1::TrainingSummary Summary() const;

 private:
  v1::Evaluation Evaluate(const Measurement& measurement) const;
  // Reports a measurement without counted samples. `what` is "training" or "validation".
  void TellOfNoResult(const v1::Evaluation& evaluation, absl::string_view what, int64_t steps);
  // Returns the current epoch and begins the next.
  v1::EpochSummary TakeEpoch(int64_t steps);
  // Reports an epoch, after its validation if it has one.
  void FinishEpoch(v1::EpochSummary epoch);

  const TrainingLength length_;
  const v1::Training training_spec_;
  const std::vector<std::string> devices_;
  const bool validates_;
  const LearningRate* const learning_rate_;
  const AveragingPolicy* const averaging_;
  const Clock* const clock_;
  TrainerObserver* const observer_;
  double target_deviation_ = 0;
  std::vector<std::string> class_names_;

  Judge judge_;
  std::vector<double> loads_;
  int64_t reported_steps_ = 0;
  // The number of skipped steps in a row before the last report, because gradients were not finite.
  int64_t steps_left_out_ = 0;
  absl::Duration report_time_;  // The time of the last report, or of later work.
  // The current epoch so far.
  std::vector<Measurement> epoch_shares_;
  absl::Duration epoch_duration_;
  // A trained epoch that waits for its validation.
  v1::EpochSummary trained_epoch_;

  // As in TrainingState.
  std::vector<EarlierEpochs> earlier_epochs_;
  std::optional<v1::Evaluation> ended_by_;
  int64_t samples_ = 0;  // Trained samples, over all epochs.
  v1::TrainingSummary summary_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_REPORTER_H_
