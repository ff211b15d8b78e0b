#ifndef TANDEM_SERVER_DAEMON_CLUSTER_OPTIONS_H_
#define TANDEM_SERVER_DAEMON_CLUSTER_OPTIONS_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "server/daemon/options.h"

namespace tandem {

// Adds the options of a Slurm cluster to the command line.
void AddClusterOptions(DaemonOptions* options, CLI::App* app);

// Checks the options of a Slurm cluster. INVALID_ARGUMENT names the wrong option.
absl::Status CheckClusterOptions(const DaemonOptions& options);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CLUSTER_OPTIONS_H_
