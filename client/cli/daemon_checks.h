#ifndef TANDEM_CLIENT_CLI_DAEMON_CHECKS_H_
#define TANDEM_CLIENT_CLI_DAEMON_CHECKS_H_

#include <vector>

#include "client/cli/finding.h"
#include "client/cli/session.h"
#include "client/lib/client.h"
#include "tandem/v1/device.pb.h"

namespace tandem::cli {

// Looks at what a call needs on this side: the token's file and the TLS files. Makes no call.
Findings CheckConnection(Session& session);

// What the daemon's answer tells: its version beside this one's, its clock, and the certificate that it
// shows.
Findings CheckAnswer(Session& session, const client::DaemonAnswer& answer);

// Devices that take no jobs, and why; those that seem to fail.
Findings CheckDevices(const std::vector<v1::Device>& devices);

// Jobs that will wait for ever unless somebody does something.
Findings CheckQueue(const v1::ListQueueResponse& queue);

// Data sets that jobs can name and that cannot be used.
Findings CheckDatasets(const std::vector<v1::Dataset>& datasets);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DAEMON_CHECKS_H_
