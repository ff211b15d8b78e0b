#include "server/workers/owner_mode.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "engine/base/unique_fd.h"

namespace tandem {

void RestoreOwnerMode(const std::string& path) {
  // O_PATH needs no right to the file itself.
  const UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid()) RestoreOwnerMode(fd.get());
}

void RestoreOwnerMode(int fd) {
  struct stat file;
  if (fstat(fd, &file) != 0) return;
  if (!S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode)) return;
  const mode_t needed = S_ISDIR(file.st_mode) ? 0700 : 0600;
  if ((file.st_mode & needed) == needed) return;
  chmod(absl::StrCat("/proc/self/fd/", fd).c_str(), (file.st_mode & 07777) | needed);
}

}  // namespace tandem
