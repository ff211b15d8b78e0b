#include "engine/training/reporter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

std::vector<std::string> MetricNames(const v1::Training& training) {
  std::vector<std::string> names;
  for (const int metric : training.metrics()) names.emplace_back(MetricName(static_cast<v1::Metric>(metric)));
  return names;
}

std::string WatchedMetric(const v1::Schedule& schedule) {
  const v1::Metric metric = schedule.plateau().metric();
  return metric == v1::METRIC_UNSPECIFIED ? "" : std::string(MetricName(metric));
}

void AddTo(Measurement& total, const Measurement& more) {
  total.sums.resize(std::max(total.sums.size(), more.sums.size()), 0);
  for (size_t i = 0; i < more.sums.size(); ++i) total.sums[i] += more.sums[i];
  total.samples += more.samples;
  total.data_wait_seconds += more.data_wait_seconds;
  total.reduce_seconds += more.reduce_seconds;
}

double Rate(int64_t samples, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? static_cast<double>(samples) / seconds : 0;
}

}  // namespace

Reporter::Reporter(const v1::JobSpec& spec, int64_t steps_per_epoch, std::vector<std::string> devices,
                   bool validates, LearningRate* learning_rate, const Clock* clock, TrainerObserver* observer)
    : epochs_(spec.training().epochs()),
      steps_per_epoch_(steps_per_epoch),
      metric_names_(MetricNames(spec.training())),
      devices_(std::move(devices)),
      validates_(validates),
      watched_metric_(WatchedMetric(spec.training().schedule())),
      learning_rate_(learning_rate),
      clock_(clock),
      observer_(observer),
      training_(devices_.size()),
      validation_(devices_.size()),
      epoch_shares_(devices_.size()) {}

void Reporter::Start() {
  MutexLock lock(&mutex_);
  if (observer_ != nullptr) observer_->OnStarted();
  report_time_ = epoch_time_ = clock_->Elapsed();
}

bool Reporter::Gathering::Add(int rank, Measurement measurement) {
  measurements[rank] = std::move(measurement);
  if (++count < static_cast<int>(measurements.size())) return false;
  count = 0;
  return true;
}

Measurement Reporter::Gathering::Total() const {
  Measurement total;
  for (const Measurement& measurement : measurements) AddTo(total, measurement);
  return total;
}

v1::Evaluation Reporter::Evaluate(const Measurement& measurement) const {
  v1::Evaluation evaluation;
  const double samples = static_cast<double>(measurement.samples);
  evaluation.set_loss(measurement.sums[0] / samples);
  for (size_t i = 0; i < metric_names_.size(); ++i) {
    (*evaluation.mutable_metrics())[metric_names_[i]] = measurement.sums[1 + i] / samples;
  }
  evaluation.set_samples(measurement.samples);
  return evaluation;
}

absl::Status Reporter::AddTraining(int rank, int64_t steps, Measurement measurement) {
  MutexLock lock(&mutex_);
  if (!training_.Add(rank, std::move(measurement))) return absl::OkStatus();
  const Measurement total = training_.Total();
  AddTo(epoch_total_, total);
  for (size_t r = 0; r < training_.measurements.size(); ++r)
    AddTo(epoch_shares_[r], training_.measurements[r]);

  const absl::Duration now = clock_->Elapsed();
  v1::Progress progress;
  progress.set_epoch((steps - 1) / steps_per_epoch_ + 1);
  progress.set_epochs(epochs_);
  progress.set_step(steps);
  progress.set_steps(epochs_ * steps_per_epoch_);
  *progress.mutable_training() = Evaluate(total);
  progress.set_images_per_second(Rate(total.samples, now - report_time_));
  progress.set_learning_rate(learning_rate_->Rate(steps - 1));
  if (!std::isfinite(progress.training().loss())) {
    return absl::OutOfRangeError(absl::StrCat(
        "the training loss is ", progress.training().loss(), " at step ", steps,
        reported_steps_ + 1 < steps ? absl::StrCat(" (it was finite until step ", reported_steps_, ")") : "",
        "; lower the learning rate or look at the data"));
  }
  if (observer_ != nullptr) observer_->OnProgress(progress);
  reported_steps_ = steps;
  report_time_ = now;
  if (steps % steps_per_epoch_ != 0) return absl::OkStatus();

  v1::EpochSummary epoch;
  epoch.set_epoch(progress.epoch());
  epoch.set_epochs(epochs_);
  epoch.set_step(steps);
  *epoch.mutable_training() = Evaluate(epoch_total_);
  epoch.set_training_seconds(absl::ToDoubleSeconds(now - epoch_time_));
  epoch.set_images_per_second(Rate(epoch_total_.samples, now - epoch_time_));
  epoch.set_learning_rate(progress.learning_rate());
  for (size_t r = 0; r < devices_.size(); ++r) {
    v1::ReplicaShare* share = epoch.add_replicas();
    share->set_rank(static_cast<int>(r));
    share->set_device(devices_[r]);
    share->set_samples(epoch_shares_[r].samples);
    share->set_data_wait_seconds(epoch_shares_[r].data_wait_seconds);
    share->set_reduce_seconds(epoch_shares_[r].reduce_seconds);
  }
  epoch_total_ = {};
  epoch_shares_.assign(devices_.size(), {});
  epoch_time_ = now;
  if (validates_) {
    trained_epoch_ = std::move(epoch);
  } else {
    FinishEpoch(std::move(epoch));
  }
  return absl::OkStatus();
}

absl::Status Reporter::AddValidation(int rank, Measurement measurement) {
  MutexLock lock(&mutex_);
  if (!validation_.Add(rank, std::move(measurement))) return absl::OkStatus();
  v1::EpochSummary epoch = std::move(trained_epoch_);
  *epoch.mutable_validation() = Evaluate(validation_.Total());
  epoch.set_validation_seconds(absl::ToDoubleSeconds(clock_->Elapsed() - epoch_time_));
  if (!std::isfinite(epoch.validation().loss())) {
    return absl::OutOfRangeError(
        absl::StrCat("the validation loss is ", epoch.validation().loss(), " after step ", epoch.step(),
                     ", the end of epoch ", epoch.epoch(), "; lower the learning rate or look at the data"));
  }
  FinishEpoch(std::move(epoch));
  return absl::OkStatus();
}

void Reporter::FinishEpoch(v1::EpochSummary epoch) {
  const v1::Evaluation& measured = epoch.has_validation() ? epoch.validation() : epoch.training();
  learning_rate_->EndEpoch(
      epoch.step(), watched_metric_.empty() ? measured.loss() : measured.metrics().at(watched_metric_));
  if (observer_ != nullptr) observer_->OnEpoch(epoch);
  report_time_ = epoch_time_ = clock_->Elapsed();
}

}  // namespace tandem
