#ifndef TANDEM_SERVER_DAEMON_LOGGING_H_
#define TANDEM_SERVER_DAEMON_LOGGING_H_

#include <string>

namespace tandem {

// Sends the log to standard error, including gRPC's messages at level debug. A line is "time level message",
// in UTC. With the format "json", a line is an object with these three fields. Messages hold details as
// key=value. Call once, before other threads start.
void SetUpLogging(const std::string& level, const std::string& format);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_LOGGING_H_
