#ifndef TANDEM_SERVER_DAEMON_CHECK_H_
#define TANDEM_SERVER_DAEMON_CHECK_H_

#include <string>
#include <vector>

#include "server/daemon/options.h"

namespace tandem {

// The result for one thing that a daemon needs.
struct Check {
  enum class Verdict {
    kFine,
    // The daemon would start, but the finding may surprise somebody.
    kWarning,
    // The daemon would not start, or no client could use it.
    kProblem,
  };
  Verdict verdict = Verdict::kFine;
  // For example "state folder /var/lib/tandem".
  std::string subject;
  // The finding, or the fault and its remedy.
  std::string message;
};

// Checks if a daemon with these options could start: its addresses, TLS files, programs, folders and cluster.
// Starts the worker program with --version and, with a cluster, `sinfo`. Changes nothing, except for a
// temporary file in the state folder that tests for free space.
// A running daemon on the state folder is no problem; it keeps the folder and its addresses.
std::vector<Check> CheckDaemon(const DaemonOptions& options);

// Returns a conclusion in one line: a daemon with these options can or cannot run. If a daemon already runs
// on the state folder, the line says from when the options take effect.
std::string ConclusionOf(const std::vector<Check>& checks, const DaemonOptions& options);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CHECK_H_
