#ifndef TANDEM_CLIENT_CLI_CLUSTER_CHECKS_H_
#define TANDEM_CLIENT_CLI_CLUSTER_CHECKS_H_

#include <cstdint>
#include <string>

#include "client/cli/finding.h"
#include "tandem/v1/daemon_service.pb.h"

namespace tandem::cli {

// Checks the cluster's answer in ListDevices: its partitions. No findings if the daemon has no cluster.
Findings CheckPartitions(const v1::ListDevicesResponse& cluster);

// Checks the cluster's options of the daemon on this machine with the process `pid`: its shared folder, and
// its address for workers. Connects to this address, for at most 2 s. No findings if the daemon has no
// cluster. `root` is a prefix of /proc, for tests.
Findings CheckClusterOptions(int64_t pid, const std::string& root);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_CLUSTER_CHECKS_H_
