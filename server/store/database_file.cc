#include "server/store/database_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace tandem {

absl::StatusOr<DatabaseFile> DatabaseFile::At(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path));
  return DatabaseFile(path, info.st_dev, info.st_ino);
}

absl::Status DatabaseFile::Check() const {
  struct stat info = {};
  const bool is_there = stat(path_.c_str(), &info) == 0;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) return absl::OkStatus();
  if (is_there && info.st_dev == device_ && info.st_ino == inode_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot use the database ", path_, ": it was ",
                                             is_there ? "replaced by another file" : "removed",
                                             " while the daemon used it"));
}

}  // namespace tandem
