#ifndef TANDEM_SERVER_CLUSTERS_SLURM_LAUNCHER_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_LAUNCHER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/clusters/launcher.h"
#include "server/clusters/slurm/slurm_client.h"

namespace tandem {

// Starts each attempt as one Slurm job with the comment "tandem:JOB:ATTEMPT". Thread-safe.
class SlurmLauncher final : public Launcher {
 public:
  // `client` must outlive the launcher.
  explicit SlurmLauncher(SlurmClient* client) : client_(client) {}

  std::string name() const override { return "Slurm"; }
  absl::StatusOr<LaunchedAttempt> Submit(const LaunchRequest& request) override;
  absl::StatusOr<std::vector<LaunchedAttempt>> Observe() override;
  absl::Status Cancel(const LaunchedAttempt& attempt) override;
  absl::StatusOr<std::optional<LaunchedAttempt>> TakeOver(const AttemptId& id) override;
  absl::Status Test(const v1::JobSpec& spec) override;
  absl::StatusOr<std::vector<v1::ClusterPartition>> Partitions() override;

 private:
  SlurmClient* const client_;
};

// Returns an attempt's comment in Slurm, and the reverse; nullopt if the comment has another form.
std::string SlurmCommentOf(const AttemptId& id);
std::optional<AttemptId> ParseSlurmComment(absl::string_view comment);

// Returns the request of a job with this spec for Slurm, without a comment, a script and folders. The spec
// must have its defaults (cluster_spec.h).
SlurmRequest SlurmRequestOf(const v1::JobSpec& spec);

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_LAUNCHER_H_
