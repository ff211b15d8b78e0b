#include "server/store/reserved_room.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace tandem {

int64_t ReservedRoom::AvailableBytes(const std::string& folder) {
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0) return -1;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

ReservedRoom::ReservedRoom(std::string path, Available available)
    : path_(std::move(path)),
      folder_(std::filesystem::path(path_).parent_path().string()),
      available_(std::move(available)) {
  // If this fails, Refill tries again.
  Allocate().IgnoreError();
}

absl::Status ReservedRoom::Allocate() {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path_));
  const absl::Cleanup closed = [file] { close(file); };
  struct stat info = {};
  if (fstat(file, &info) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect ", path_));
  // Allocate blocks, because a length alone reserves no room. Keeps existing blocks.
  const int error = posix_fallocate(file, 0, kSize);
  bytes_ = kSize;
  if (error == 0) return absl::OkStatus();
  bytes_ = std::min<int64_t>(info.st_size, kSize);
  if (ftruncate(file, bytes_) != 0) bytes_ = 0;
  return absl::ErrnoToStatus(error, absl::StrCat("cannot reserve room in ", path_));
}

void ReservedRoom::GiveUpIfFull(bool was_full) {
  if (bytes_ == 0) return;
  const int64_t available = available_(folder_);
  if (!was_full && (available < 0 || available >= kSlice)) return;
  const int64_t left = std::max<int64_t>(bytes_ - kSlice, 0);
  if (truncate(path_.c_str(), left) == 0 || errno == ENOENT) bytes_ = left;
}

void ReservedRoom::Refill(absl::Duration now) {
  if (bytes_ == kSize || now < next_look_) return;
  next_look_ = now + kPause;
  // The reservation itself must not fill the disk again.
  if (available_(folder_) < 2 * (kSize - bytes_)) return;
  Allocate().IgnoreError();
}

}  // namespace tandem
