#include "server/workers/untrusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/base/unique_fd.h"

namespace tandem {
namespace {

// Reads up to `most` bytes from the end of the file, or from its beginning if it has fewer. Sets `size` to
// the file's size.
absl::StatusOr<std::string> ReadEnd(const std::string& path, size_t most, size_t* size) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() && errno == ELOOP) {
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": it is a link"));
  }
  if (!fd.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  struct stat file;
  if (fstat(fd.get(), &file) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  if (!S_ISREG(file.st_mode)) {
    return absl::DataLossError(absl::StrCat("cannot read ", path, ": it is not a regular file"));
  }
  *size = static_cast<size_t>(file.st_size);
  std::string text(std::min(*size, most), '\0');
  const size_t begin = *size - text.size();
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t got =
        pread(fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace

absl::StatusOr<std::string> ReadUntrustedFile(const std::string& path, size_t most) {
  size_t size = 0;
  absl::StatusOr<std::string> text = ReadEnd(path, most, &size);
  if (text.ok() && size > most) {
    return absl::DataLossError(
        absl::StrCat("cannot read ", path, ": it has ", size, " bytes, more than ", most));
  }
  return text;
}

absl::StatusOr<std::string> ReadUntrustedTail(const std::string& path, size_t most) {
  size_t size = 0;
  return ReadEnd(path, most, &size);
}

}  // namespace tandem
