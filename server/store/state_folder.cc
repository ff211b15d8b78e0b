#include "server/store/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// Makes a folder for its owner alone, and those above it, where they are missing.
absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  if (folder.has_parent_path() && folder.parent_path() != folder) {
    TANDEM_RETURN_IF_ERROR(MakeFolder(folder.parent_path()));
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot make the folder ", folder.string()));
  }
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::FailedPreconditionError(absl::StrCat(folder.string(), " is not a folder"));
  }
  return absl::OkStatus();
}

// " (process 123)", or nothing where the file does not say.
std::string Holder(int lock_file) {
  char text[32];
  const ssize_t size = pread(lock_file, text, sizeof(text), 0);
  int64_t pid;
  if (size <= 0 || !absl::SimpleAtoi(absl::StripAsciiWhitespace(absl::string_view(text, size)), &pid))
    return "";
  return absl::StrCat(" (process ", pid, ")");
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Lock(absl::string_view path) {
  if (path.empty()) return absl::InvalidArgumentError("the state folder's path is empty");
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(std::string(path), error).lexically_normal();
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("state folder ", path));
  if (!folder.has_filename()) folder = folder.parent_path();  // a slash at the end
  TANDEM_RETURN_IF_ERROR(MakeFolder(folder));
  folder = std::filesystem::canonical(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("state folder ", path));

  const std::string lock_path = folder.string() + "/daemon.lock";
  // Closed on exec: a worker must not keep the folder locked when its daemon is gone.
  const int lock_file = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", lock_path));
  std::unique_ptr<StateFolder> state_folder(new StateFolder(folder.string(), lock_file));
  if (flock(lock_file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", lock_path));
    return absl::FailedPreconditionError(absl::StrCat("another tandemd", Holder(lock_file),
                                                      " holds the state folder ", folder.string(),
                                                      ": stop it, or give another state folder"));
  }
  // For people and for the message above; the lock is what counts.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(lock_file, 0) != 0 || pwrite(lock_file, pid.data(), pid.size(), 0) != ssize_t(pid.size())) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", lock_path));
  }
  TANDEM_RETURN_IF_ERROR(MakeFolder(state_folder->JobsFolder()));
  return state_folder;
}

StateFolder::~StateFolder() { close(lock_file_); }

}  // namespace tandem
