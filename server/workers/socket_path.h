#ifndef TANDEM_SERVER_WORKERS_SOCKET_PATH_H_
#define TANDEM_SERVER_WORKERS_SOCKET_PATH_H_

#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// Returns the path of the Unix socket on which the daemon of this state folder listens to its workers.
// Creates the socket's folder, which only this user may enter. The same state folder gives the same path, so
// that workers find the next daemon. `state_folder` must be absolute and exist. FAILED_PRECONDITION: the
// folder in the state folder belongs to another user, or a folder is open to others.
//
// The path is "<state folder>/workers/socket". If that exceeds the system's limit of 107 bytes, the path is
// "/tmp/tandem-<uid>-<hash of the state folder>/socket". If another user has taken this name, the path is
// "/tmp/tandem-<uid>-<random>/socket", and the file "socket-folder" in the state folder keeps it. If another
// user takes that name too while no daemon or worker uses it, a new random name is chosen.
absl::StatusOr<std::string> PrepareSocketPath(const std::string& state_folder);

// Returns a socket's path in gRPC's form: "unix:" and the percent-encoded path.
std::string UnixTarget(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SOCKET_PATH_H_
