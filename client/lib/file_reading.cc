#include "client/lib/file_reading.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tandem::client {
namespace {

absl::Status ReadError(const std::string& path, int error) {
  const std::string message = absl::StrCat("cannot read ", path, ": ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(message);
  if (error == EACCES || error == EPERM) return absl::PermissionDeniedError(message);
  if (error == EISDIR || error == ELOOP || error == ENAMETOOLONG) return absl::InvalidArgumentError(message);
  // Callers would report UNAVAILABLE as a daemon that does not answer.
  return absl::FailedPreconditionError(message);
}

}  // namespace

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit) {
  const bool standard_input = path == "-";
  const int file = standard_input ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return ReadError(path, errno);
  std::string content;
  absl::Status status;
  char buffer[16384];
  while (true) {
    const ssize_t count = read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) status = ReadError(standard_input ? "standard input" : path, errno);
    if (count <= 0) break;
    content.append(buffer, count);
    if (content.size() > limit) {
      status =
          absl::ResourceExhaustedError(absl::StrCat("cannot read ", standard_input ? "standard input" : path,
                                                    ": it has more than ", limit, " bytes; make it smaller"));
      break;
    }
  }
  if (!standard_input) close(file);
  if (!status.ok()) return status;
  return content;
}

}  // namespace tandem::client
