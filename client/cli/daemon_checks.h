#ifndef TANDEM_CLIENT_CLI_DAEMON_CHECKS_H_
#define TANDEM_CLIENT_CLI_DAEMON_CHECKS_H_

#include <vector>

#include "client/cli/finding.h"
#include "client/cli/session.h"
#include "client/lib/client.h"
#include "tandem/v1/device.pb.h"

namespace tandem::cli {

// Checks the files that a call needs on this side: the token file and the TLS files. Makes no call.
Findings CheckConnection(Session& session);

// Checks the daemon's answer: its version against this program's, its clock, and its certificate.
Findings CheckAnswer(Session& session, const client::DaemonAnswer& answer);

// Reports devices that take no jobs, with the reason, and devices that seem to fail.
Findings CheckDevices(const std::vector<v1::Device>& devices);

// Reports jobs that wait for ever unless someone acts.
Findings CheckQueue(const v1::ListQueueResponse& queue);

// Reports data sets that jobs can name but not use.
Findings CheckDatasets(const std::vector<v1::Dataset>& datasets);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_DAEMON_CHECKS_H_
