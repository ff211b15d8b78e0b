#ifndef TANDEM_SERVER_DAEMON_BEGIN_ANEW_H_
#define TANDEM_SERVER_DAEMON_BEGIN_ANEW_H_

#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// Returns the folders in the state folder that belonged to a database, for example "jobs/, uploads/". Empty
// if none has content, for example because no daemon ever ran. Ignores empty folders and the database itself.
std::string RemainsOf(const std::string& state_folder);

// Moves the database and its folders into a new folder "before-<time>" in the state folder, so that the next
// daemon starts with a new database. Tokens, TLS files, caches and logs stay. Returns sentences for people
// about the result. FAILED_PRECONDITION as StateFolder::Lock, or if nothing needs moving. Other errors are
// the system's: some files may have been moved already, and another call moves the rest.
absl::StatusOr<std::string> BeginAnew(const std::string& state_folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_BEGIN_ANEW_H_
