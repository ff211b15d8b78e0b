#ifndef TANDEM_SERVER_DAEMON_CHECK_H_
#define TANDEM_SERVER_DAEMON_CHECK_H_

#include <string>
#include <vector>

#include "server/daemon/options.h"

namespace tandem {

// What was found of one thing that a daemon needs.
struct Check {
  enum class Verdict {
    kFine,
    // A daemon would start, but somebody may be surprised.
    kWarning,
    // It would not start, or no client could use it.
    kProblem,
  };
  Verdict verdict = Verdict::kFine;
  // "state folder /var/lib/tandem".
  std::string subject;
  // What there is, or what is wrong and what mends it.
  std::string message;
};

// Whether a daemon with these options could start: its addresses, TLS files, programs and folders. Starts and
// changes nothing, but for a file in the state folder that is there for a moment, to see whether the disk
// takes it. A daemon that runs there already is no problem, and keeps the folder and its addresses.
std::vector<Check> CheckDaemon(const DaemonOptions& options);

// What follows from them, in a line: whether one could run so, and, where one runs on the state folder
// already, when.
std::string ConclusionOf(const std::vector<Check>& checks, const DaemonOptions& options);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CHECK_H_
