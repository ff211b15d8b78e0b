#ifndef TANDEM_SERVER_DAEMON_BEGIN_ANEW_H_
#define TANDEM_SERVER_DAEMON_BEGIN_ANEW_H_

#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// What a state folder holds that a database once knew: "jobs/, uploads/"; empty: nothing, as where no daemon
// ever ran. Of folders those count that have something in them. The database itself does not.
std::string RemainsOf(const std::string& state_folder);

// Moves the database, and all that it knew, into a new folder "before-<time>" in the state folder, so that
// the next daemon finds none; tokens' and TLS files, caches and logs stay. What was done, in sentences for
// people. FAILED_PRECONDITION: as StateFolder::Lock, or there is nothing to be moved. Others: the system's;
// what was moved by then stays moved, and another call moves the rest.
absl::StatusOr<std::string> BeginAnew(const std::string& state_folder);

}  // namespace tandem

#endif  // TANDEM_SERVER_DAEMON_BEGIN_ANEW_H_
