#ifndef TANDEM_CLIENT_CLI_JOB_PROGRESS_H_
#define TANDEM_CLIENT_CLI_JOB_PROGRESS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem::cli {

// What a job's events so far come to: where it stands, how fast it goes, how long it will take. Not
// thread-safe.
class JobProgress {
 public:
  // Takes the next event; `received` is the moment on this machine, whose clock may differ from the event's.
  void Add(const v1::JobEvent& event, absl::Time received);

  v1::JobState state() const { return state_; }
  // Whether it has ended, as of now.
  bool terminal() const { return terminal_; }
  // The newest change of state; default before the first.
  const v1::StateChange& last_change() const { return last_change_; }
  // Why it waits, as was last heard; unset once its state has changed.
  const absl::optional<v1::Waiting>& waiting() const { return waiting_; }
  void SetWaiting(const v1::Waiting& waiting) { waiting_ = waiting; }
  // When the job came to its state, by this machine's clock.
  absl::Time state_since() const { return state_since_; }

  // The newest report; unset before the first.
  const absl::optional<v1::Progress>& progress() const { return progress_; }
  // The newest epoch; unset before the first.
  const absl::optional<v1::EpochSummary>& last_epoch() const { return last_epoch_; }
  // The share of all steps that is done, from 0 to 1.
  double Fraction() const;
  // How long training will go on, counted down between reports; unset before that can be said.
  absl::optional<absl::Duration> TimeLeft(absl::Time now) const;

  // For how long it has held its devices, of all attempts together, to its newest event and by the daemon's
  // clock; before the first attempt from its first event.
  absl::Duration Elapsed() const;
  // The newest of each name.
  const std::vector<v1::Artifact>& artifacts() const { return artifacts_; }
  // Whether it wrote a checkpoint.
  bool has_checkpoint() const { return has_checkpoint_; }
  // The best result so far; unset before the first.
  const absl::optional<v1::BestResult>& best() const { return best_; }

 private:
  void AddArtifact(const v1::Artifact& artifact);
  void RemoveModel();
  void AddStep(int64_t step, int64_t steps, absl::Time time, absl::Time received);

  v1::JobState state_ = v1::JOB_STATE_UNSPECIFIED;
  bool terminal_ = false;
  v1::StateChange last_change_;
  absl::optional<v1::Waiting> waiting_;
  absl::Time state_since_ = absl::InfinitePast();
  absl::optional<v1::Progress> progress_;
  absl::optional<v1::EpochSummary> last_epoch_;
  bool has_checkpoint_ = false;
  absl::optional<v1::BestResult> best_;
  std::vector<v1::Artifact> artifacts_;
  absl::Time first_time_, last_time_;
  absl::optional<absl::Time> held_since_;  // Unset while it holds none.
  absl::Duration held_;                    // Of the attempts before.
  int32_t attempt_ = 0;

  int64_t step_ = 0;
  int64_t steps_ = 0;
  // When training of this attempt began and at which step, by the daemon's clock: the rate is measured from
  // there.
  absl::optional<absl::Time> training_since_;
  int64_t first_step_ = 0;
  // The estimate at the newest report, and when that was received.
  absl::optional<absl::Duration> left_;
  absl::Time left_at_;
};

// Whether a job in `state` holds devices.
bool HoldsDevices(v1::JobState state);

// The metric that one column or curve shows: "accuracy" where there is one, else the first by name; "" where
// there is none.
std::string MainMetric(const v1::Evaluation& evaluation);

// All metrics with their values: the main one first, then by name.
std::vector<std::pair<std::string, double>> OrderedMetrics(const v1::Evaluation& evaluation);

// Whether less of this metric is better: errors, and what follows from the loss.
bool IsBetterWhenSmaller(const std::string& metric);

// "accuracy" as "acc"; other names as they are.
std::string ShortMetricName(const std::string& metric);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_PROGRESS_H_
