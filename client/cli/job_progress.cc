#include "client/cli/job_progress.h"

#include <algorithm>

#include "client/cli/format.h"
#include "client/lib/main_metric.h"

namespace tandem::cli {

void JobProgress::SetJob(const v1::Job& job) {
  is_on_cluster_ = job.spec().has_cluster();
  forked_at_ = job.forked_from().step();
}

void JobProgress::Add(const v1::JobEvent& event, absl::Time received) {
  const absl::Time time = FromProto(event.time());
  if (last_time_ == absl::Time() && first_time_ == absl::Time()) first_time_ = time;
  last_time_ = std::max(last_time_, time);
  if (event.attempt() != attempt_) {
    attempt_ = event.attempt();
    training_since_ = absl::nullopt;
    left_ = absl::nullopt;
    // The attempt may begin at an earlier step than the end of the last attempt.
    step_ = 0;
  }
  switch (event.kind_case()) {
    case v1::JobEvent::kStateChange:
      // A job that had ended may continue.
      terminal_ = event.terminal();
      last_change_ = event.state_change();
      state_ = last_change_.to();
      waiting_ = absl::nullopt;
      // The model of an earlier stop no longer belongs to the job.
      if (state_ == v1::JOB_STATE_RUNNING) RemoveModel();
      state_since_ = received;
      if (HoldsDevices(state_)) {
        const bool may_begin = !is_on_cluster_ || state_ == v1::JOB_STATE_RUNNING;
        if (may_begin && !held_since_.has_value()) held_since_ = time;
      } else if (held_since_.has_value()) {
        held_ += time - *held_since_;
        held_since_ = absl::nullopt;
      }
      // The first report of a later attempt has its first step.
      if (state_ == v1::JOB_STATE_RUNNING && attempt_ <= 1) {
        training_since_ = time;
        first_step_ = std::max(step_, forked_at_);
      }
      break;
    case v1::JobEvent::kProgress:
      progress_ = event.progress();
      AddStep(progress_->step(), progress_->steps(), time, received);
      break;
    case v1::JobEvent::kEpoch:
      last_epoch_ = event.epoch();
      AddStep(last_epoch_->step(), steps_, time, received);
      if (last_epoch_->has_best()) best_ = last_epoch_->best();
      break;
    case v1::JobEvent::kValidation:
      if (event.validation().has_best()) best_ = event.validation().best();
      break;
    case v1::JobEvent::kCheckpoint:
      has_checkpoint_ = true;
      break;
    case v1::JobEvent::kArtifact:
      AddArtifact(event.artifact());
      break;
    default:
      break;
  }
}

absl::Duration JobProgress::Elapsed() const {
  if (held_since_.has_value()) return held_ + (last_time_ - *held_since_);
  return held_ > absl::ZeroDuration() ? held_ : last_time_ - first_time_;
}

void JobProgress::RemoveModel() {
  const auto is_model = [](const v1::Artifact& artifact) { return artifact.name() == "model.safetensors"; };
  artifacts_.erase(std::remove_if(artifacts_.begin(), artifacts_.end(), is_model), artifacts_.end());
}

void JobProgress::AddArtifact(const v1::Artifact& artifact) {
  for (v1::Artifact& known : artifacts_) {
    if (known.name() != artifact.name()) continue;
    known = artifact;
    return;
  }
  artifacts_.push_back(artifact);
}

void JobProgress::AddStep(int64_t step, int64_t steps, absl::Time time, absl::Time received) {
  // A report may be older than the epoch event before it.
  step_ = std::max(step_, step);
  steps_ = std::max(steps_, steps);
  if (!training_since_.has_value()) {
    training_since_ = time;
    first_step_ = step_;
  }
  const absl::Duration gone = time - *training_since_;
  if (step_ <= first_step_ || gone <= absl::ZeroDuration()) return;
  left_ = gone * (static_cast<double>(std::max<int64_t>(0, steps_ - step_)) /
                  static_cast<double>(step_ - first_step_));
  left_at_ = received;
}

double JobProgress::Fraction() const {
  if (state_ == v1::JOB_STATE_SUCCEEDED) return 1;
  return steps_ <= 0 ? 0 : std::clamp(static_cast<double>(step_) / static_cast<double>(steps_), 0.0, 1.0);
}

absl::optional<absl::Duration> JobProgress::TimeLeft(absl::Time now) const {
  if (!left_.has_value() || terminal_) return absl::nullopt;
  return std::max(absl::ZeroDuration(), *left_ - (now - left_at_));
}

bool HoldsDevices(v1::JobState state) {
  return state == v1::JOB_STATE_STARTING || state == v1::JOB_STATE_RUNNING ||
         state == v1::JOB_STATE_CANCELLING || state == v1::JOB_STATE_PAUSING ||
         state == v1::JOB_STATE_PREEMPTING;
}

std::vector<std::pair<std::string, double>> OrderedMetrics(const v1::Evaluation& evaluation) {
  const std::string main = client::MainMetric(evaluation);
  std::vector<std::pair<std::string, double>> ordered(evaluation.metrics().begin(),
                                                      evaluation.metrics().end());
  std::sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
    return std::pair(a.first != main, a.first) < std::pair(b.first != main, b.first);
  });
  return ordered;
}

std::string ShortMetricName(const std::string& metric) { return metric == "accuracy" ? "acc" : metric; }

}  // namespace tandem::cli
