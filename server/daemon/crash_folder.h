#ifndef TANDEM_SERVER_DAEMON_CRASH_FOLDER_H_
#define TANDEM_SERVER_DAEMON_CRASH_FOLDER_H_

#include <string>
#include <vector>

namespace tandem {

// Returns the crash reports ("crash-*.txt") in a state folder, newest first.
std::vector<std::string> FindCrashReports(const std::string& state_folder);

// Sends crash reports of this process to the state folder. Logs the reports of earlier daemons, and removes
// all but the newest few.
void NoteCrashReports(const std::string& state_folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CRASH_FOLDER_H_
