#ifndef TANDEM_SERVER_CLUSTERS_SLURM_SLURM_COMMAND_CLIENT_H_
#define TANDEM_SERVER_CLUSTERS_SLURM_SLURM_COMMAND_CLIENT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/base/command.h"
#include "server/clusters/slurm/slurm_client.h"

namespace tandem {

// The cluster that Slurm's programs reach: sbatch, squeue, scancel and sinfo, with formats that Slurm 20 and
// later print. Each call runs one program. A program gets a small environment: PATH, HOME, USER, LOGNAME,
// LD_LIBRARY_PATH, SLURM_CONF and SLURM_CONF_SERVER of this process, the locale C and the time zone UTC. Jobs
// inherit this environment. Thread-safe.
class SlurmCommandClient : public SlurmClient {
 public:
  struct Options {
    // The longest time of a program. After it, the call returns UNAVAILABLE.
    absl::Duration time_limit = absl::Seconds(30);
    // The folders with Slurm's programs, as in PATH. Empty: PATH of this process.
    std::string path;
  };

  explicit SlurmCommandClient(Options options);

  // FAILED_PRECONDITION names a program of Slurm that is not installed.
  absl::Status CheckInstalled() const;

  absl::StatusOr<std::string> Submit(const SlurmRequest& request) override;
  absl::Status Test(const SlurmRequest& request) override;
  absl::StatusOr<std::vector<SlurmJob>> Poll() override;
  absl::StatusOr<std::optional<SlurmJob>> Find(absl::string_view comment) override;
  absl::Status Cancel(absl::string_view id, bool signal_term) override;
  absl::StatusOr<std::vector<SlurmPartition>> Partitions() override;

 private:
  // Runs a program. FAILED_PRECONDITION if it is not installed; UNAVAILABLE if it does not end in time.
  absl::StatusOr<CommandResult> Run(const char* program, std::vector<std::string> arguments) const;
  // Runs a program. Also returns UNAVAILABLE if it does not exit with 0. Returns its standard output.
  absl::StatusOr<std::string> Ask(const char* program, std::vector<std::string> arguments) const;

  const Options options_;
  const std::vector<std::string> environment_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_CLUSTERS_SLURM_SLURM_COMMAND_CLIENT_H_
