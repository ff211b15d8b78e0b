#ifndef TANDEM_SERVER_CLUSTERS_CLUSTER_RUN_H_
#define TANDEM_SERVER_CLUSTERS_CLUSTER_RUN_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/clusters/launcher.h"
#include "server/store/records.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_session.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// An attempt, from its start to the return of its lease. The lock guards all members but those that never
// change, and `job`, which is for the thread.
struct ClusterRun {
  enum class Phase {
    kSubmit,   // to be submitted
    kFind,     // may have been submitted
    kWatched,  // submitted
    kEnded,    // no worker runs or will run; to be settled
  };

  ClusterRun(const v1::Job& launched, const std::string& jobs_folder, Phase first)
      : job_id(JobId(launched.name())),
        attempt(launched.attempt()),
        folder(absl::StrCat(jobs_folder, "/", job_id)),
        workers(std::max(1, launched.spec().replicas().workers())),
        job(launched),
        state(launched.state()),
        phase(first) {}

  AttemptId id() const { return {job_id, attempt}; }
  bool is_stopping() const { return state != v1::JOB_STATE_STARTING && state != v1::JOB_STATE_RUNNING; }
  bool waits_in_queue() const {
    return phase == Phase::kWatched && seen.has_value() && seen->state == LaunchedAttempt::State::kWaiting &&
           session == nullptr;
  }
  // Ends the run. Returns the session, to be closed.
  std::shared_ptr<WorkerSession> End(absl::Time now) {
    phase = Phase::kEnded;
    due = now;
    was_stopping = is_stopping();
    return std::move(session);
  }

  const std::string job_id;
  const int32_t attempt;
  const JobFolder folder;
  const int workers;

  // The job at the start or adoption of the run, with the newest `cluster_attempt`. Has the whole spec if
  // this daemon submits the attempt.
  v1::Job job;
  // The newest state of the job, while this is its newest attempt.
  v1::JobState state;
  // True if an earlier daemon started the attempt. `job` then lacks parts of its spec.
  bool is_adopted = false;

  Phase phase;
  // When the thread must submit, find or settle it.
  absl::Time due = absl::InfinitePast();
  std::string secret;
  std::optional<LaunchedAttempt> seen;
  // When this daemon first saw that the attempt's script had begun. InfiniteFuture before.
  absl::Time begun_at = absl::InfiniteFuture();
  // True until the worker connects, or until a notice says that the worker has not connected.
  bool is_unreported = true;
  absl::Time absent_since = absl::InfiniteFuture();
  // InfiniteFuture while connected.
  absl::Time silent_since = absl::InfiniteFuture();
  std::shared_ptr<WorkerSession> session;
  // is_stopping() at the end of the run.
  bool was_stopping = false;
  // When the launcher must end it.
  absl::Time cancel_at = absl::InfiniteFuture();
  // Why it could not be started, or not yet. OK if it could.
  absl::Status refusal;
  // True if it counts as lost: it is absent, or back in the queue, and its workers are silent.
  bool is_lost = false;
};

// Why an attempt's workers ended, if their events do not say. For JobMachine::WorkerLost.
struct AttemptLoss {
  v1::StateReason reason = v1::STATE_REASON_WORKER_LOST;
  std::string message;
};

// Describes the loss of an ended run. `launcher_name` is Launcher::name, `absence_limit` as in
// ClusterJobs::Options. Reads the attempt's files.
AttemptLoss DescribeLoss(const ClusterRun& run, const std::string& launcher_name,
                         absl::Duration absence_limit);

// Returns why a STARTING or stopping run waits for its cluster; nullopt if the run does not. `away` says that
// the launcher does not answer, as a sentence. Empty if the launcher answers.
std::optional<v1::Waiting> DescribeWaiting(const ClusterRun& run, const std::string& launcher_name,
                                           const std::string& away);

// Describes a running attempt whose worker has not connected within `limit` after its start. `daemon_target`
// is WorkerLaunch's.
std::string DescribeSilence(const ClusterRun& run, const std::string& launcher_name, absl::Duration limit,
                            const std::string& daemon_target);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_CLUSTER_RUN_H_
