#ifndef TANDEM_SERVER_DAEMON_CLUSTER_CHECK_H_
#define TANDEM_SERVER_DAEMON_CLUSTER_CHECK_H_

#include <vector>

#include "server/daemon/check.h"
#include "server/daemon/cluster_options.h"
#include "server/daemon/options.h"

namespace tandem {

// Checks the options of a Slurm cluster: the shared folder, the address for workers, Slurm's programs and
// Slurm's answer. Reports `faults` as problems, and does not check their options further. Changes nothing.
// Blocks for at most 10 s per program of Slurm. Returns nothing if the options have no cluster and no fault.
// `is_running`: a daemon runs on the state folder.
std::vector<Check> CheckCluster(const DaemonOptions& options, const std::vector<OptionFault>& faults,
                                bool is_running);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CLUSTER_CHECK_H_
