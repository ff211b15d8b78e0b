#ifndef TANDEM_SERVER_WORKERS_WORKER_LOG_H_
#define TANDEM_SERVER_WORKERS_WORKER_LOG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// Returns the last non-empty line of a log, before a crash's stack at its end. Cuts it to 300 characters, and
// replaces all but printable ASCII. Empty if none, or if the worker put something else in the log's place.
std::string LastLogLine(const std::string& path);

// Returns the same of a log's text.
std::string LastLineOf(absl::string_view text);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_LOG_H_
