#include "engine/training/reporter.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/metrics/meter.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

// After this many halvings, the largest scale is 1 for a long time.
constexpr int64_t kMostStepsLeftOut = 200;

double Rate(int64_t samples, double seconds) {
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

}  // namespace

Reporter::Reporter(const v1::JobSpec& spec, const TrainingLength& length, std::vector<std::string> devices,
                   bool validates, LearningRate* learning_rate, const AveragingPolicy* averaging,
                   const Clock* clock, TrainerObserver* observer)
    : length_(length),
      training_spec_(spec.training()),
      devices_(std::move(devices)),
      validates_(validates),
      learning_rate_(learning_rate),
      averaging_(averaging),
      clock_(clock),
      observer_(observer),
      judge_(spec.training(), learning_rate),
      loads_(devices_.size(), 1.0),
      epoch_shares_(devices_.size()) {}

void Reporter::Restore(const TrainingState& state) {
  judge_.Restore(state);
  earlier_epochs_ = state.earlier_epochs;
  reported_steps_ = state.step;
  epoch_shares_ = state.epoch_shares;
  epoch_shares_.resize(devices_.size());
  epoch_duration_ = absl::Seconds(state.epoch_seconds);
  samples_ = state.samples;
  summary_ = state.summary;
  ended_by_ = state.ended_by;
}

void Reporter::Start() {
  observer_->OnStarted(reported_steps_);
  report_time_ = clock_->Elapsed();
}

void Reporter::SetLoads(std::vector<double> loads) { loads_ = std::move(loads); }

v1::Evaluation Reporter::Evaluate(const Measurement& measurement) const {
  v1::Evaluation evaluation;
  ReadMeter(training_spec_, measurement.sums, &evaluation);
  if (measurement.evaluator != nullptr) measurement.evaluator->Fill(&evaluation);
  if (evaluation.has_classification()) {
    evaluation.mutable_classification()->mutable_class_names()->Assign(class_names_.begin(),
                                                                       class_names_.end());
  }
  RestoreTargetScale(training_spec_, target_deviation_, &evaluation);
  evaluation.set_samples(measurement.samples);
  return evaluation;
}

absl::Status Reporter::AddTraining(int64_t steps, const AfterStep& after,
                                   const std::vector<Measurement>& replicas) {
  judge_.ForgetImprovement();
  ended_by_.reset();
  const Measurement total = TotalOf(replicas);
  for (size_t r = 0; r < epoch_shares_.size(); ++r) epoch_shares_[r].Add(replicas[r]);

  const absl::Duration now = clock_->Elapsed();
  const double seconds = absl::ToDoubleSeconds(now - report_time_);
  v1::Progress progress;
  progress.set_epoch(length_.EpochOf(steps));
  progress.set_epochs(length_.epochs);
  progress.set_step(steps);
  progress.set_steps(length_.steps);
  *progress.mutable_training() = Evaluate(total);
  progress.set_images_per_second(Rate(total.samples, seconds));
  progress.set_learning_rate(learning_rate_->Rate(steps - 1));
  progress.set_averagings(averaging_->Averagings(steps));
  progress.set_loss_scale(LossScaleOf(replicas));
  if (HasLoss(total.sums) && !std::isfinite(progress.training().loss())) {
    return absl::OutOfRangeError(
        absl::StrCat("the training loss is ", progress.training().loss(), " at step ", steps,
                     // Nobody looks between reports.
                     reported_steps_ > 0 && reported_steps_ + 1 < steps
                         ? absl::StrCat(" (at step ", reported_steps_, ", the report before, it was finite)")
                         : "",
                     "; lower the learning rate or look at the data"));
  }
  const int64_t taken = steps - reported_steps_;
  steps_left_out_ = SkippedStepsOf(replicas) >= taken ? steps_left_out_ + taken : 0;
  if (steps_left_out_ >= kMostStepsLeftOut) {
    return absl::OutOfRangeError(
        absl::StrCat("the gradients of the last ", steps_left_out_, " steps, up to step ", steps,
                     ", are not finite, though the loss is, which is scaled by ", progress.loss_scale(),
                     ": nothing is learnt; train in bfloat16 or float32, or lower the learning rate"));
  }
  observer_->OnProgress(progress);
  reported_steps_ = steps;
  report_time_ = now;
  epoch_duration_ += absl::Seconds(seconds);
  samples_ += total.samples;
  summary_.set_steps(steps);
  summary_.set_training_seconds(summary_.training_seconds() + seconds);
  summary_.set_images_per_second(Rate(samples_, summary_.training_seconds()));
  if (!after.ends_epoch) return absl::OkStatus();

  v1::EpochSummary epoch = TakeEpoch(steps);
  if (!validates_) {
    TellOfNoResult(epoch.training(), "training", steps);
    judge_.Measure(epoch.training(), /*validation=*/false, epoch.epoch(), steps);
  }
  if (after.validate) {
    trained_epoch_ = std::move(epoch);
  } else {
    FinishEpoch(std::move(epoch));
  }
  return absl::OkStatus();
}

void Reporter::TellOfNoResult(const v1::Evaluation& evaluation, absl::string_view what, int64_t steps) {
  if (!std::isnan(evaluation.loss())) return;
  observer_->OnNotice(absl::StrCat("cannot measure the ", what, " loss after step ", steps, ": all ",
                                   evaluation.samples(),
                                   " samples are ignored or weigh nothing; it counts as no result"));
}

v1::EpochSummary Reporter::TakeEpoch(int64_t steps) {
  v1::EpochSummary epoch;
  const Measurement total = TotalOf(epoch_shares_);
  const double seconds = absl::ToDoubleSeconds(epoch_duration_);
  epoch.set_epoch(length_.EpochOf(steps));
  epoch.set_epochs(length_.epochs);
  epoch.set_step(steps);
  *epoch.mutable_training() = Evaluate(total);
  epoch.set_training_seconds(seconds);
  epoch.set_images_per_second(Rate(total.samples, seconds));
  epoch.set_learning_rate(learning_rate_->Rate(steps - 1));
  epoch.set_averagings(averaging_->Averagings(steps));
  epoch.set_skipped_steps(SkippedStepsOf(epoch_shares_));
  const double loads = std::accumulate(loads_.begin(), loads_.end(), 0.0);
  for (size_t r = 0; r < devices_.size(); ++r) {
    v1::ReplicaShare* share = epoch.add_replicas();
    share->set_rank(static_cast<int>(r));
    share->set_device(devices_[r]);
    share->set_samples(epoch_shares_[r].samples);
    share->set_data_wait_seconds(epoch_shares_[r].data_wait_seconds);
    share->set_reduce_seconds(epoch_shares_[r].reduce_seconds);
    share->set_load(loads_[r] / loads);
  }
  // If an epoch was cut short and training continues in it, its shares add up.
  if (length_.StepOfEpoch(steps) != 0) return epoch;
  epoch_shares_.assign(devices_.size(), {});
  epoch_duration_ = absl::ZeroDuration();
  return epoch;
}

absl::Status Reporter::AddValidation(int64_t steps, const AfterStep& after,
                                     const std::vector<Measurement>& replicas) {
  const Measurement total = TotalOf(replicas);
  const v1::Evaluation validation = Evaluate(total);
  const absl::Duration now = clock_->Elapsed();
  const double seconds = absl::ToDoubleSeconds(now - report_time_);
  report_time_ = now;
  const int64_t epoch = length_.EpochOf(steps);
  if (HasLoss(total.sums) && !std::isfinite(validation.loss())) {
    return absl::OutOfRangeError(absl::StrCat("the validation loss is ", validation.loss(), " after step ",
                                              steps, ", in epoch ", epoch,
                                              "; lower the learning rate or look at the data"));
  }
  TellOfNoResult(validation, "validation", steps);
  if (after.is_finished) ended_by_ = summary_.validation();
  *summary_.mutable_validation() = validation;
  summary_.set_validation_step(steps);
  summary_.set_validation_seconds(summary_.validation_seconds() + seconds);
  if (after.is_finished) {
    judge_.MeasureFinished(validation, epoch, steps);
  } else {
    judge_.Measure(validation, /*validation=*/true, epoch, steps);
  }
  if (after.ends_epoch) {
    *trained_epoch_.mutable_validation() = validation;
    trained_epoch_.set_validation_seconds(seconds);
    FinishEpoch(std::move(trained_epoch_));
    return absl::OkStatus();
  }
  v1::ValidationResult result;
  result.set_epoch(epoch);
  result.set_step(steps);
  *result.mutable_validation() = validation;
  result.set_validation_seconds(seconds);
  if (judge_.best() != nullptr) *result.mutable_best() = *judge_.best();
  observer_->OnValidation(result);
  report_time_ = clock_->Elapsed();
  return absl::OkStatus();
}

void Reporter::FinishEpoch(v1::EpochSummary epoch) {
  judge_.EndEpoch(epoch.step());
  if (judge_.best() != nullptr) *epoch.mutable_best() = *judge_.best();
  summary_.set_epochs(length_.WholeEpochs(epoch.step()));
  *summary_.mutable_training() = epoch.training();
  observer_->OnEpoch(epoch);
  report_time_ = clock_->Elapsed();
}

void Reporter::LeaveOut() { report_time_ = clock_->Elapsed(); }

TrainingOutcome Reporter::EarlyEnd() const { return judge_.end(); }

bool Reporter::Improved() const { return judge_.improved(); }

bool Reporter::IsBest() const { return judge_.best() != nullptr && judge_.best()->step() == reported_steps_; }

void Reporter::CloseEpoch() { FinishEpoch(TakeEpoch(summary_.steps())); }

TrainingState Reporter::State() const {
  TrainingState state;
  state.step = reported_steps_;
  state.steps_per_epoch = length_.steps_per_epoch;
  state.epoch_shift = length_.epoch_shift;
  state.earlier_epochs = earlier_epochs_;
  state.epoch_shares = epoch_shares_;
  state.epoch_seconds = absl::ToDoubleSeconds(epoch_duration_);
  state.samples = samples_;
  state.summary = summary_;
  state.ended_by = ended_by_;
  judge_.Save(&state);
  return state;
}

v1::TrainingSummary Reporter::Summary() const { return State().summary; }

}  // namespace tandem
