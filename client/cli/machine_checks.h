#ifndef TANDEM_CLIENT_CLI_MACHINE_CHECKS_H_
#define TANDEM_CLIENT_CLI_MACHINE_CHECKS_H_

#include <string>
#include <vector>

#include "client/cli/finding.h"
#include "tandem/v1/daemon_service.pb.h"
#include "tandem/v1/device.pb.h"

namespace tandem::cli {

// Whether the daemon with this state folder runs on this machine: the folder is here, and the process that
// holds it is. `root`: before /proc and the like, for tests.
bool IsDaemonHere(const v1::Daemon& daemon, const std::string& root = "");

// Looks at the machine that the daemon runs on, which is this one: room and inodes of the state folder's
// disk, data folders, crash reports, shared memory, the daemon's limits (files, processes, and its control
// group's processors and memory), its TLS files, and NVIDIA's driver.
Findings CheckMachine(const v1::Daemon& daemon, const std::vector<v1::Device>& devices,
                      const std::string& root = "");

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_MACHINE_CHECKS_H_
