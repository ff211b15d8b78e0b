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

// The state of a job, derived from its events so far: its progress, its speed and its remaining time. Not
// thread-safe.
class JobProgress {
 public:
  // Takes the facts of the job that no event has. If the job trains on a cluster, the time in the cluster's
  // queue is no part of Elapsed. If the job is a fork, the steps before its checkpoint are no part of its
  // rate. Call before Add.
  void SetJob(const v1::Job& job);

  // Takes the next event. `received` is the time on this machine, whose clock may differ from the event's
  // clock.
  void Add(const v1::JobEvent& event, absl::Time received);

  v1::JobState state() const { return state_; }
  // Returns whether the job has ended.
  bool terminal() const { return terminal_; }
  // Returns the newest change of state. Default before the first.
  const v1::StateChange& last_change() const { return last_change_; }
  // Returns the newest reason for waiting. Unset after the next change of state.
  const absl::optional<v1::Waiting>& waiting() const { return waiting_; }
  void SetWaiting(const v1::Waiting& waiting) { waiting_ = waiting; }
  // Returns the time of the newest change of state, by this machine's clock.
  absl::Time state_since() const { return state_since_; }

  // Returns the newest report. Unset before the first.
  const absl::optional<v1::Progress>& progress() const { return progress_; }
  // Returns the newest epoch. Unset before the first.
  const absl::optional<v1::EpochSummary>& last_epoch() const { return last_epoch_; }
  // Returns the finished share of all steps, from 0 to 1.
  double Fraction() const;
  // Returns the remaining time of training, counted down between reports. Unset if unknown.
  absl::optional<absl::Duration> TimeLeft(absl::Time now) const;

  // Returns the time for which the job has held its devices, over all attempts, until its newest event and by
  // the daemon's clock. On a cluster, a job holds its devices from the start of its training. Before the
  // first attempt, returns the time since its first event.
  absl::Duration Elapsed() const;
  // Returns the newest artifact of each name.
  const std::vector<v1::Artifact>& artifacts() const { return artifacts_; }
  // Returns whether the job wrote a checkpoint.
  bool has_checkpoint() const { return has_checkpoint_; }
  // Returns the best result so far. Unset before the first.
  const absl::optional<v1::BestResult>& best() const { return best_; }

 private:
  void AddArtifact(const v1::Artifact& artifact);
  void RemoveModel();
  void AddStep(int64_t step, int64_t steps, absl::Time time, absl::Time received);

  bool is_on_cluster_ = false;
  int64_t forked_at_ = 0;  // The step of the checkpoint from which the job began.
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
  absl::optional<absl::Time> held_since_;  // Unset while the job holds no devices.
  absl::Duration held_;                    // The total of earlier attempts.
  int32_t attempt_ = 0;

  int64_t step_ = 0;
  int64_t steps_ = 0;
  // The start of training in this attempt, by the daemon's clock, and its first step. The rate is measured
  // from there.
  absl::optional<absl::Time> training_since_;
  int64_t first_step_ = 0;
  // The estimate at the newest report, and the time at which the report was received.
  absl::optional<absl::Duration> left_;
  absl::Time left_at_;
};

// Returns whether a job in `state` holds devices.
bool HoldsDevices(v1::JobState state);

// Returns all metrics with their values: the main metric first, the others by name.
std::vector<std::pair<std::string, double>> OrderedMetrics(const v1::Evaluation& evaluation);

// Returns "acc" for "accuracy", and other names unchanged.
std::string ShortMetricName(const std::string& metric);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_JOB_PROGRESS_H_
