#ifndef TANDEM_SERVER_WORKERS_WORKER_LOG_H_
#define TANDEM_SERVER_WORKERS_WORKER_LOG_H_

#include <string>

namespace tandem {

// The last line of a log with something in it, before a crash's stack where the log ends with one, shortened
// to 300 characters, what is not printable ASCII replaced. Empty where there is none.
std::string LastLogLine(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_WORKER_LOG_H_
