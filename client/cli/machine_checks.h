#ifndef TANDEM_CLIENT_CLI_MACHINE_CHECKS_H_
#define TANDEM_CLIENT_CLI_MACHINE_CHECKS_H_

#include <string>
#include <vector>

#include "client/cli/finding.h"
#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/device.pb.h"

namespace tandem::cli {

// Returns whether the daemon with this state folder runs on this machine: the folder exists here, and its
// daemon's process runs. `root` is a prefix of /proc and other system paths, for tests.
bool IsDaemonHere(const v1::Daemon& daemon, const std::string& root = "");

// Checks the daemon's machine, which is this machine: free space and inodes of the state folder's disk, data
// folders, crash reports, shared memory, the daemon's limits (files, processes, and its control group's
// processors and memory), its TLS files, its cluster's options, and NVIDIA's driver.
Findings CheckMachine(const v1::Daemon& daemon, const std::vector<v1::Device>& devices,
                      const std::string& root = "");

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_MACHINE_CHECKS_H_
