#ifndef TANDEM_SERVER_CLUSTERS_SSH_LAUNCHER_H_
#define TANDEM_SERVER_CLUSTERS_SSH_LAUNCHER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/mutex.h"
#include "server/clusters/launcher.h"
#include "server/clusters/ssh/host.h"
#include "server/clusters/ssh/host_client.h"
#include "server/workers/job_folder.h"

namespace tandem {

// Starts each attempt's workers on hosts that the daemon reaches by SSH. Thread-safe.
//
// Attempts wait in a queue of this process: the highest priority first, then the oldest. The first attempt
// starts as soon as enough hosts have enough free cores and GPUs. Later attempts wait for the first, unless
// it waits for a host that does not answer. A daemon that restarts submits its waiting attempts again.
//
// The hosts' own processes tell which attempts run and which cores and GPUs they hold. So attempts outlive
// the daemon, and two daemons of a user share their hosts.
class SshLauncher final : public Launcher {
 public:
  struct Options {
    // As in --ssh-host.
    std::vector<std::string> hosts;
    // The parent of the jobs' folders, as the hosts see it.
    std::string jobs_folder;
    // The time from SIGTERM to SIGKILL.
    absl::Duration kill_grace = absl::Seconds(30);
    // The time that a task may be gone without an exit code until the others are ended. A shared file system
    // may show the code late.
    absl::Duration late_code_limit = absl::Seconds(30);
    const Clock* clock = Clock::Real();
  };

  // `client` must outlive the launcher.
  SshLauncher(Options options, HostClient* client);

  std::string name() const override { return "SSH"; }
  absl::StatusOr<LaunchedAttempt> Submit(const LaunchRequest& request) override;
  absl::StatusOr<std::vector<LaunchedAttempt>> Observe() override;
  absl::Status Cancel(const LaunchedAttempt& attempt) override;
  absl::StatusOr<std::optional<LaunchedAttempt>> TakeOver(const AttemptId& id) override;
  absl::Status Test(const v1::JobSpec& spec) override;
  absl::StatusOr<std::vector<v1::ClusterPartition>> Partitions() override;

 private:
  struct Attempt {
    LaunchedAttempt seen;
    // Empty once it has been started.
    std::string script;
    HostNeed need;
    int priority = 0;
    // In the order of submission.
    int64_t number = 0;
    int workers = 1;
    // True if its folder is not among this daemon's jobs: another daemon of the user runs it.
    bool is_foreign = false;
    bool is_cancelled = false;
    // Why it could not be started everywhere. `detail` is empty if it could.
    struct Failure {
      v1::StateReason reason = v1::STATE_REASON_WORKER_LOST;
      std::string detail;
    } failure;
    absl::Duration placed_at = -absl::InfiniteDuration();
    absl::Duration terminated_at = absl::InfiniteDuration();
    // Since when a task is gone without an exit code.
    absl::Duration incomplete_since = absl::InfiniteDuration();
    absl::Duration ended_at = absl::InfiniteDuration();
  };

  static AttemptId IdOf(const HostTask& task) { return {task.job_id, task.attempt}; }
  JobFolder FolderOf(const AttemptId& id) const;

  // Asks all hosts, at the same time.
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // Adds an attempt that waits.
  Attempt& AddAttempt(const AttemptId& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // Records an attempt that runs and that this process does not know.
  void Adopt(const AttemptId& id, const HostTask& task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // Records where an attempt's tasks are, after Look. Returns false if that is unknown.
  bool Update(Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // Signals the attempt's tasks: at first SIGTERM, after the grace SIGKILL.
  absl::Status Stop(Attempt& attempt) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  void End(Attempt& attempt, v1::StateReason reason, std::string detail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  // Starts the waiting attempts for which there is room.
  void StartWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  void Start(Attempt& attempt, const HostChoice& choice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(calls_);
  std::vector<Host> Hosts() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the time since the last look. Infinite without a look.
  absl::Duration AgeOfLook() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  HostClient* const client_;

  // Held during calls of hosts. Taken before mutex_.
  Mutex calls_;
  std::map<AttemptId, Attempt> attempts_ ABSL_GUARDED_BY(calls_);
  int64_t next_number_ ABSL_GUARDED_BY(calls_) = 0;

  Mutex mutex_;
  // As last seen, in the order of Options::hosts. A host that was never seen has no size.
  std::vector<Host> hosts_ ABSL_GUARDED_BY(mutex_);
  absl::Duration looked_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
};

// Returns the hosts that a job with this spec needs. The spec must have its defaults (cluster_spec.h).
HostNeed HostNeedOf(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SSH_LAUNCHER_H_
