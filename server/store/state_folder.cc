#include "server/store/state_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// Creates a folder and missing parents, for its owner alone.
absl::Status MakeFolder(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  if (folder.has_parent_path() && folder.parent_path() != folder) {
    TANDEM_RETURN_IF_ERROR(MakeFolder(folder.parent_path()));
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create the folder ", folder.string()));
  }
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot use ", folder.string(), ": it is not a folder"));
  }
  return absl::OkStatus();
}

// A daemon that is killed while it starts a worker leaves a child with the lock's file open until the child's
// exec. So wait this long for the lock of a dead daemon.
constexpr absl::Duration kPatienceWithTheDead = absl::Seconds(5);
// A stopping daemon announced its stop and is finishing its work.
constexpr absl::Duration kPatienceWithTheStopping = absl::Seconds(20);
constexpr absl::Duration kInterval = absl::Milliseconds(10);

constexpr absl::string_view kStops = " stops";

// The holder's note in the file.
struct Holder {
  // 0: unknown.
  pid_t pid = 0;
  bool stops = false;
};

Holder HolderOf(int lock_file) {
  char text[64];
  const ssize_t size = pread(lock_file, text, sizeof(text), 0);
  if (size <= 0) return {};
  absl::string_view words = absl::StripAsciiWhitespace(absl::string_view(text, size));
  Holder holder;
  holder.stops = absl::ConsumeSuffix(&words, kStops);
  if (!absl::SimpleAtoi(words, &holder.pid)) return {};
  return holder;
}

// Overwrites the old text: on a full disk, a truncated file might not get a block again.
bool WriteHolder(int lock_file, absl::string_view stops) {
  const std::string text = absl::StrCat(getpid(), stops, "\n");
  return pwrite(lock_file, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()) &&
         ftruncate(lock_file, static_cast<off_t>(text.size())) == 0;
}

// Returns true if the process does not exist or is a zombie.
bool IsDead(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string stat;
  if (!std::getline(file, stat)) return kill(pid, 0) != 0 && errno == ESRCH;
  // "pid (name) state ...", where the name may have any characters.
  const size_t end = stat.rfind(") ");
  return end != std::string::npos && end + 2 < stat.size() && (stat[end + 2] == 'Z' || stat[end + 2] == 'X');
}

absl::Status LockFile(int lock_file, const std::string& folder) {
  const absl::Duration begin = Clock::Real()->Elapsed();
  while (flock(lock_file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return absl::ErrnoToStatus(errno, absl::StrCat("cannot lock ", folder));
    const Holder holder = HolderOf(lock_file);
    absl::Duration patience = holder.stops ? kPatienceWithTheStopping : absl::ZeroDuration();
    // A live holder in another container also looks dead.
    if (holder.pid != 0 && IsDead(holder.pid)) patience = std::max(patience, kPatienceWithTheDead);
    if (Clock::Real()->Elapsed() - begin < patience) {
      absl::SleepFor(kInterval);
      continue;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot use the state folder ", folder, ": another tandemd",
        holder.pid == 0 ? "" : absl::StrCat(" (process ", holder.pid, ")"),
        holder.stops ? " uses it and is stopping" : " uses it", "; stop it, or use another state folder"));
  }
  return absl::OkStatus();
}

// Does not change the folder's mode, because many may use the folder, such as /tmp.
absl::Status CheckNobodyElseWrites(const std::filesystem::path& folder) {
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot inspect the state folder ", folder.string()));
  }
  if ((info.st_mode & 022) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("cannot use the state folder %s: its mode %04o lets other users replace its database "
                      "and tokens; chmod go-w %s, or use a new folder in it",
                      folder.string(), info.st_mode & 07777, folder.string()));
}

absl::Status CannotOpen(const std::string& lock_path, int error) {
  const char* mend = "";
  if (error == EACCES) {
    mend =
        "; run tandemd as the user that owns the state folder, and give this user all files in it (chown -R)";
  } else if (error == EROFS) {
    mend =
        "; mount its disk writable. Under systemd, the unit needs ReadWritePaths= for another state folder";
  }
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("cannot open ", lock_path));
  return absl::Status(status.code(), absl::StrCat(status.message(), mend));
}

// The folders that a cluster's nodes need.
constexpr const char* kSharedFolders[] = {"jobs", "uploads", "cache", "public", "kept-weights"};
// The empty folders of a cache that was never used: a daemon without a cluster may have started earlier.
constexpr const char* kUnusedCache[] = {"entries", "partial"};

// Returns the path of the file that names the state folder of the shared folder's daemon.
std::string OwnerPath(const std::string& shared) { return shared + "/tandem-daemon"; }

// Returns true if the folder is empty, or has only the folders of an unused cache.
bool IsUnused(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool is_part =
        std::find(std::begin(kUnusedCache), std::end(kUnusedCache), name) != std::end(kUnusedCache);
    if (!is_part || !entry->is_directory(error) || !std::filesystem::is_empty(entry->path(), error)) {
      return false;
    }
  }
  return !error;
}

// Checks that a link to `target` can replace the folder `here`, or already has replaced it.
absl::Status CheckReplaceable(const std::string& here, const std::string& target) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::symlink_status(here, error).type();
  if (type == std::filesystem::file_type::not_found) return absl::OkStatus();
  if (std::filesystem::equivalent(here, target, error)) return absl::OkStatus();
  // ShareThrough creates a missing target of its link.
  if (std::filesystem::read_symlink(here, error) == target) return absl::OkStatus();
  const bool is_folder = type == std::filesystem::file_type::directory;
  if (is_folder && IsUnused(here)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "cannot share ", here,
      " with a cluster: ", is_folder ? "it has content" : "it is a link to another place, or not a folder",
      "; stop the daemon, move its content to ", target, " and remove ", here,
      ", or use a new state folder"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateFolder>> StateFolder::Lock(absl::string_view path) {
  if (path.empty()) return absl::InvalidArgumentError("the state folder's path must not be empty");
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(std::string(path), error).lexically_normal();
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot find the state folder ", path));
  if (!folder.has_filename()) folder = folder.parent_path();  // a trailing slash
  TANDEM_RETURN_IF_ERROR(MakeFolder(folder));
  folder = std::filesystem::canonical(folder, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot find the state folder ", path));

  TANDEM_RETURN_IF_ERROR(CheckNobodyElseWrites(folder));
  const std::string lock_path = folder.string() + "/daemon.lock";
  // Closed on exec, so that a worker does not keep the folder locked after its daemon's end.
  const int lock_file = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_file < 0) return CannotOpen(lock_path, errno);
  std::unique_ptr<StateFolder> state_folder(new StateFolder(folder.string(), lock_file));
  TANDEM_RETURN_IF_ERROR(LockFile(lock_file, folder.string()));
  // Used for the message and the patience above. Only the lock counts.
  if (!WriteHolder(lock_file, "")) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", lock_path));
  }
  TANDEM_RETURN_IF_ERROR(MakeFolder(state_folder->JobsFolder()));
  return state_folder;
}

absl::Status StateFolder::CheckShare(const std::string& state, const std::string& shared) {
  std::error_code error;
  const std::string folder = std::filesystem::canonical(shared, error).string();
  if (error) {
    return absl::Status(absl::ErrnoToStatusCode(error.value()),
                        absl::StrCat("cannot use the shared folder ", shared, ": ", error.message(),
                                     "; it must exist, on a file system of all nodes"));
  }
  const std::string cannot = absl::StrCat("cannot use the shared folder ", folder);
  if (!std::filesystem::is_directory(folder, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(cannot, ": it is not a folder; name a folder on a file system of all nodes"));
  }
  if (access(folder.c_str(), R_OK | W_OK | X_OK) != 0) {
    return absl::Status(absl::ErrnoToStatusCode(errno),
                        absl::StrCat(cannot, ": user ", geteuid(), " may not write to it: ", strerror(errno),
                                     "; give it to the user that runs tandemd"));
  }
  const std::filesystem::path absolute = std::filesystem::absolute(state, error);
  const std::string own = error ? "" : std::filesystem::weakly_canonical(absolute, error).string();
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot find the state folder ", state));
  // Two daemons with one shared folder would remove each other's files.
  const std::string owner_path = OwnerPath(folder);
  const absl::StatusOr<std::string> owner = Env::Real()->ReadFile(owner_path);
  if (!owner.ok() && !absl::IsNotFound(owner.status())) return owner.status();
  if (owner.ok() && absl::StripAsciiWhitespace(*owner) != own) {
    return absl::FailedPreconditionError(
        absl::StrCat(cannot, ": the daemon of the state folder ", absl::StripAsciiWhitespace(*owner),
                     " uses it; use another folder, or remove ", owner_path, " if that daemon is gone"));
  }
  for (const char* const name : kSharedFolders) {
    TANDEM_RETURN_IF_ERROR(CheckReplaceable(absl::StrCat(own, "/", name), absl::StrCat(folder, "/", name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> StateFolder::ShareThrough(const std::string& shared) const {
  TANDEM_RETURN_IF_ERROR(CheckShare(path_, shared));
  std::error_code error;
  const std::string folder = std::filesystem::canonical(shared, error).string();
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot find ", shared));
  const std::string owner_path = OwnerPath(folder);
  if (!std::filesystem::exists(owner_path, error)) {
    TANDEM_RETURN_IF_ERROR(WriteFileAtomically(
        Env::Real(), owner_path, [&](WritableFile& file) { return file.Append(absl::StrCat(path_, "\n")); }));
  }
  for (const char* const name : kSharedFolders) {
    const std::string target = absl::StrCat(folder, "/", name), here = absl::StrCat(path_, "/", name);
    TANDEM_RETURN_IF_ERROR(MakeFolder(target));
    if (std::filesystem::exists(here, error) && std::filesystem::equivalent(here, target, error)) continue;
    for (const char* const part : kUnusedCache) rmdir(absl::StrCat(here, "/", part).c_str());
    if (rmdir(here.c_str()) != 0 && errno != ENOENT) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot replace ", here, " by a link to ", target));
    }
    if (symlink(target.c_str(), here.c_str()) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot link ", here, " to ", target));
    }
  }
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(path_));
  return folder;
}

StateFolder::~StateFolder() { close(lock_file_); }

void StateFolder::AnnounceStop() const { WriteHolder(lock_file_, kStops); }

}  // namespace tandem
