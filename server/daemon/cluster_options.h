#ifndef TANDEM_SERVER_DAEMON_CLUSTER_OPTIONS_H_
#define TANDEM_SERVER_DAEMON_CLUSTER_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/daemon/options.h"

namespace tandem {

// Adds the options of a Slurm cluster to the command line.
void AddClusterOptions(DaemonOptions* options, CLI::App* app);

// A fault of an option.
struct OptionFault {
  // The option's name, such as "--worker-listen".
  std::string option;
  // The fault and its remedy, as the rest of a sentence that begins with the name.
  std::string message;
};

// Returns all faults of the options of a Slurm cluster. Looks only at the options' texts.
std::vector<OptionFault> FaultsOfClusterOptions(const DaemonOptions& options);

// Checks the options of a Slurm cluster. INVALID_ARGUMENT names all faults.
absl::Status CheckClusterOptions(const DaemonOptions& options);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CLUSTER_OPTIONS_H_
