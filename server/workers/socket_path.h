#ifndef TANDEM_SERVER_WORKERS_SOCKET_PATH_H_
#define TANDEM_SERVER_WORKERS_SOCKET_PATH_H_

#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// The path of the Unix socket on which the daemon of this state folder hears its workers, in a folder that
// this user alone may enter, which is made where it is missing. The same state folder gives the same path, so
// that workers find the next daemon: "<state folder>/workers/socket", or, where that is longer than the
// system allows (107 bytes), "/tmp/tandem-<uid>-<hash of the state folder>/socket". Where that name in /tmp
// is taken by another user, it is "/tmp/tandem-<uid>-<random>/socket" instead, which the file "socket-folder"
// in the state folder keeps; should another user take that one too, while no daemon and no worker has it, the
// next. `state_folder` must be absolute, and exist. FAILED_PRECONDITION: the folder in the state folder is
// another user's, or one is open to others.
absl::StatusOr<std::string> PrepareSocketPath(const std::string& state_folder);

// A socket's path as gRPC wants to read it: "unix:" and the path, percent-encoded.
std::string UnixTarget(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SOCKET_PATH_H_
