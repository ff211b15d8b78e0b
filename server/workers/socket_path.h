#ifndef TANDEM_SERVER_WORKERS_SOCKET_PATH_H_
#define TANDEM_SERVER_WORKERS_SOCKET_PATH_H_

#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// The path of the Unix socket on which the daemon of this state folder hears its workers, in a folder that
// this user alone may enter, which is made where it is missing. The same state folder always gives the same
// path, so that workers find the next daemon: "<state folder>/workers/socket", or, where that is longer than
// the system allows (107 bytes), "/tmp/tandem-<uid>-<hash of the state folder>/socket". `state_folder` must
// be absolute. FAILED_PRECONDITION: a folder of that name is another user's, or open to others.
absl::StatusOr<std::string> PrepareSocketPath(const std::string& state_folder);

// A socket's path as gRPC wants to read it: "unix:" and the path, percent-encoded.
std::string UnixTarget(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SOCKET_PATH_H_
