#ifndef TANDEM_SERVER_CLUSTERS_LAUNCHER_H_
#define TANDEM_SERVER_CLUSTERS_LAUNCHER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tandem/v1/device.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// An attempt of a job. The pair identifies it.
struct AttemptId {
  std::string job_id;
  int32_t attempt = 0;
  bool operator==(const AttemptId&) const = default;
  bool operator<(const AttemptId& other) const {
    return job_id != other.job_id ? job_id < other.job_id : attempt < other.attempt;
  }
};

// An attempt to start.
struct LaunchRequest {
  // With its spec, the attempt's number, and the folder as the nodes see it. The attempt's folder exists.
  v1::Job job;
  // The program of each worker and its arguments.
  std::vector<std::string> command;
  // More variables of the workers. No secrets.
  std::vector<std::pair<std::string, std::string>> environment;
  // Paths that each node must have before a worker starts.
  std::vector<std::string> required_paths;
};

// An attempt, as its launcher sees it.
struct LaunchedAttempt {
  enum class State {
    kWaiting,  // the workers have not started
    kRunning,  // the workers run, or are ending
    kEnded,    // no worker runs or will run
  };
  AttemptId id;
  // The launcher's name for it, such as Slurm's number of the job.
  std::string handle;
  State state = State::kWaiting;
  // Why it waits, or how it ended, for people: "Resources", "TIMEOUT".
  std::string detail;
  // How it ended, if its workers do not say. Set for kEnded.
  v1::StateReason reason = v1::STATE_REASON_WORKER_LOST;
  // The last start; the probable start of a waiting attempt. In whole seconds. Empty if unknown.
  std::optional<absl::Time> start;
  // The nodes of an attempt that runs or has run. May be empty.
  std::vector<std::string> nodes;
};

// Starts the workers of jobs' attempts somewhere, and watches them. Calls block for up to the launcher's own
// time limit. Thread-safe.
//
// UNAVAILABLE from any method: the launcher gave no answer, and nothing new is known.
class Launcher {
 public:
  virtual ~Launcher() = default;

  // Returns the launcher's name for people, such as "Slurm".
  virtual std::string name() const = 0;

  // Starts an attempt, a single time for each AttemptId. Returns the attempt. UNAVAILABLE: the attempt may
  // have been started, or may start soon; TakeOver tells. ABORTED: it is not started, because there are too
  // many; a later Submit may start it. Any other error: it is not started and will not
  // start; the message is for the job's owner.
  virtual absl::StatusOr<LaunchedAttempt> Submit(const LaunchRequest& request) = 0;

  // Returns all attempts of this user that the launcher knows, of this daemon and of others. The launcher may
  // forget ended attempts. An attempt that is missing from an answer is unknown, and has not necessarily
  // ended.
  virtual absl::StatusOr<std::vector<LaunchedAttempt>> Observe() = 0;

  // Ends an attempt. Workers get SIGTERM and, after the launcher's own grace, SIGKILL. OK if the attempt has
  // ended or is not known. Ends nothing if the handle now belongs to something else.
  virtual absl::Status Cancel(const LaunchedAttempt& attempt) = 0;

  // Returns an attempt that an earlier daemon, or an unanswered Submit, may have started; nullopt if the
  // launcher does not know it.
  virtual absl::StatusOr<std::optional<LaunchedAttempt>> TakeOver(const AttemptId& id) = 0;

  // Returns whether the cluster could run a job with this spec, which has its defaults. INVALID_ARGUMENT has
  // fields relative to the message in Cluster.kind.
  virtual absl::Status Test(const v1::JobSpec& spec) = 0;

  // Returns the parts of the cluster, in the order of their names.
  virtual absl::StatusOr<std::vector<v1::ClusterPartition>> Partitions() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_LAUNCHER_H_
