#ifndef TANDEM_SERVER_DAEMON_CRASH_FOLDER_H_
#define TANDEM_SERVER_DAEMON_CRASH_FOLDER_H_

#include <string>
#include <vector>

namespace tandem {

// The crash reports of daemons in a state folder ("crash-*.txt"), the newest first.
std::vector<std::string> FindCrashReports(const std::string& state_folder);

// Has a crash of this process reported in the state folder from now on, says which reports earlier daemons
// left there, and removes all but the newest few.
void NoteCrashReports(const std::string& state_folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_CRASH_FOLDER_H_
