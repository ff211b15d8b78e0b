#include "server/rpc/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {

absl::StatusOr<bool> FileReader::Open() {
  if (fd_.valid()) return true;
  // A worker may have left a pipe in a file's place.
  fd_ = UniqueFd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd_.valid()) return true;
  if (errno == ENOENT) return false;
  return absl::InternalError(absl::StrCat("cannot open ", path_, ": ", strerror(errno)));
}

absl::StatusOr<std::string> FileReader::Read(int64_t offset) {
  TANDEM_ASSIGN_OR_RETURN(const bool exists, Open());
  std::string piece;
  if (!exists) return piece;
  piece.resize(kPieceBytes);
  ssize_t got;
  do {
    got = pread(fd_.get(), piece.data(), piece.size(), offset);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return absl::InternalError(absl::StrCat("cannot read ", path_, ": ", strerror(errno)));
  piece.resize(got);
  return piece;
}

absl::StatusOr<int64_t> FileReader::Size() {
  TANDEM_ASSIGN_OR_RETURN(const bool exists, Open());
  if (!exists) return 0;
  struct stat info;
  if (fstat(fd_.get(), &info) != 0)
    return absl::InternalError(absl::StrCat("cannot inspect ", path_, ": ", strerror(errno)));
  return info.st_size;
}

}  // namespace tandem
