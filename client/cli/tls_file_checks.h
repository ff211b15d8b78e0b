#ifndef TANDEM_CLIENT_CLI_TLS_FILE_CHECKS_H_
#define TANDEM_CLIENT_CLI_TLS_FILE_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/cli/finding.h"

namespace tandem::cli {

// Looks at the TLS files of the daemon on this machine, whose process is `pid`, as it does when they change:
// it keeps to those from before where they cannot be used, which nothing shows until the old certificate ends
// or the daemon is started anew. The process' command line, and the file of its --config, say which they are;
// nothing is found where it has none, or where this user may not look. `root`: before /proc, for tests.
Findings CheckTlsFiles(int64_t pid, const std::string& root, absl::Time now, absl::TimeZone zone);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TLS_FILE_CHECKS_H_
