#ifndef TANDEM_SERVER_CLUSTERS_SLURM_SBATCH_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_SBATCH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/command.h"
#include "server/clusters/slurm/slurm_types.h"

namespace tandem {

// Slurm sends SIGUSR1 to the batch script this long before the job's time limit, or up to a minute earlier.
inline constexpr absl::Duration kSlurmWarning = absl::Seconds(60);

// Returns OK if sbatch can be called with this request. INVALID_ARGUMENT with violations of the fields of
// SlurmRequest otherwise. If `is_test`, the paths may be empty.
absl::Status CheckSlurmRequest(const SlurmRequest& request, bool is_test);

// Returns sbatch's arguments that submit the job. `request` has passed CheckSlurmRequest.
std::vector<std::string> SubmitArguments(const SlurmRequest& request);

// Returns sbatch's arguments that only ask if Slurm would take the job. `request` has passed
// CheckSlurmRequest.
std::vector<std::string> TestArguments(const SlurmRequest& request);

// Reads the end of a submission. Returns the job's id. INVALID_ARGUMENT with Slurm's words and the field:
// Slurm made no job. ABORTED: Slurm made no job, because the user has too many; it may take the job later.
// UNAVAILABLE: the job may have been made.
absl::StatusOr<std::string> ReadSubmission(const CommandResult& result);

// Reads the end of a test. Errors as ReadSubmission.
absl::Status ReadTest(const CommandResult& result);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_SBATCH_H_
