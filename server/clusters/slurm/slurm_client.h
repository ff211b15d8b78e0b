#ifndef TANDEM_SERVER_CLUSTERS_SLURM_SLURM_CLIENT_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_SLURM_CLIENT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/clusters/slurm/slurm_types.h"

namespace tandem {

// A Slurm cluster as its user sees it. Calls block, up to a time limit. Thread-safe.
//
// Errors of all methods:
// - UNAVAILABLE: Slurm gave no answer, or no whole answer. The caller knows nothing new, and tries again.
// - FAILED_PRECONDITION: Slurm's programs are not installed.
// - INVALID_ARGUMENT: Slurm refuses the arguments, or an argument is malformed.
class SlurmClient {
 public:
  virtual ~SlurmClient() = default;

  // Submits a job. Returns its id. INVALID_ARGUMENT: Slurm made no job; the violations name fields of
  // SlurmRequest. ABORTED: Slurm made no job, because the user has too many; it may take the job later.
  // UNAVAILABLE: Slurm may have made the job, or may make it soon; Find tells.
  virtual absl::StatusOr<std::string> Submit(const SlurmRequest& request) = 0;

  // Asks if Slurm would take this job, without submitting it. INVALID_ARGUMENT has Slurm's own words; its
  // violations name fields of SlurmRequest, such as "partition". OK if the partition has the nodes, but too
  // few are ready now, or if the user has too many jobs now.
  virtual absl::Status Test(const SlurmRequest& request) = 0;

  // Returns this user's jobs whose comments start with kSlurmCommentPrefix, in the order of Slurm. Slurm
  // forgets ended jobs after minutes. No job is missing from an answer that is OK.
  virtual absl::StatusOr<std::vector<SlurmJob>> Poll() = 0;

  // Returns this user's job with this comment, or nullopt if Slurm has no such job. If several jobs have the
  // comment, returns a job that has not ended before the others, then the first in the order of their ids.
  virtual absl::StatusOr<std::optional<SlurmJob>> Find(absl::string_view comment) = 0;

  // Ends a job. If `signal_term`, only sends SIGTERM to the batch script of a running job; a pending job is
  // not changed. OK if the job has ended or is not known.
  virtual absl::Status Cancel(absl::string_view id, bool signal_term) = 0;

  // Returns the partitions that this user may see, in the order of Slurm.
  virtual absl::StatusOr<std::vector<SlurmPartition>> Partitions() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_SLURM_CLIENT_H_
