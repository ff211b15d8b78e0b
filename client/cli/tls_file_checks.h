#ifndef TANDEM_CLIENT_CLI_TLS_FILE_CHECKS_H_
#define TANDEM_CLIENT_CLI_TLS_FILE_CHECKS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client/cli/finding.h"

namespace tandem::cli {

// Checks the TLS files of the daemon on this machine with the process `pid`, as the daemon checks changed
// files. If changed files are wrong, the daemon silently keeps the old files until the old certificate
// expires or the daemon restarts. The process's command line, and the file of its --config, name the files.
// No findings if they name none, or if this user may not read them. `root` is a prefix of /proc, for tests.
Findings CheckTlsFiles(int64_t pid, const std::string& root, absl::Time now, absl::TimeZone zone);

}  // namespace tandem::cli

#endif  // TANDEM_CLIENT_CLI_TLS_FILE_CHECKS_H_
