#ifndef TANDEM_SERVER_DAEMON_LOGGING_H_
#define TANDEM_SERVER_DAEMON_LOGGING_H_

#include <string>

namespace tandem {

// Has everything logged to standard error from now on, gRPC's own messages included (as debug). Lines are
// "time level message", the time in UTC; with the format "json", objects with these three. Messages hold
// their particulars as key=value. Call once, before there are other threads.
void SetUpLogging(const std::string& level, const std::string& format);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_LOGGING_H_
