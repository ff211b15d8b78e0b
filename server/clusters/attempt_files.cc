#include "server/clusters/attempt_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/workers/kept_weights.h"
#include "server/workers/untrusted_file.h"

namespace tandem {
namespace {

constexpr char kModelEnding[] = ".safetensors";
// A worker writes this file before all others.
constexpr char kSpecFile[] = "job.yaml";
// The largest file of a single line, in bytes.
constexpr size_t kMostLine = 4096;

bool IsModelFile(absl::string_view name) { return absl::EndsWith(name, kModelEnding); }
bool IsCheckpoint(absl::string_view name) {
  return absl::StartsWith(name, "checkpoint-") && IsModelFile(name);
}
bool IsPublished(absl::string_view name) { return IsModelFile(name) || name == kSpecFile; }

// Returns the names of the regular files in a folder.
absl::StatusOr<std::set<std::string>> FilesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code unknown;
    if (std::filesystem::is_regular_file(entry->symlink_status(unknown))) {
      names.insert(entry->path().filename().string());
    }
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list the folder ", folder));
  return names;
}

// Returns false if one of the files does not exist.
bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat first = {}, second = {};
  return lstat(a.c_str(), &first) == 0 && lstat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// A copy has the original's size and time.
bool IsCopy(const std::string& a, const std::string& b) {
  struct stat first = {}, second = {};
  return lstat(a.c_str(), &first) == 0 && lstat(b.c_str(), &second) == 0 && first.st_size == second.st_size &&
         first.st_mtim.tv_sec == second.st_mtim.tv_sec && first.st_mtim.tv_nsec == second.st_mtim.tv_nsec;
}

// Makes `to` name the file `from`. Readers see the old file or the new file.
absl::Status Link(const std::string& from, const std::string& to) {
  if (IsSameFile(from, to)) return absl::OkStatus();
  const std::string unfinished = absl::StrCat(to, ".link");
  unlink(unfinished.c_str());
  if (link(from.c_str(), unfinished.c_str()) != 0) {
    // The worker has just replaced or removed the file.
    if (errno == ENOENT) return absl::OkStatus();
    if (!HasNoSecondNames(errno)) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot link ", from, " to ", unfinished));
    }
    if (IsCopy(from, to)) return absl::OkStatus();
    std::error_code error;
    const auto time = std::filesystem::last_write_time(from, error);
    if (!error) std::filesystem::copy_file(from, unfinished, error);
    if (!error) std::filesystem::last_write_time(unfinished, time, error);
    if (error) {
      unlink(unfinished.c_str());
      return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot copy ", from, " to ", unfinished));
    }
  }
  if (rename(unfinished.c_str(), to.c_str()) == 0) return absl::OkStatus();
  const absl::Status status =
      absl::ErrnoToStatus(errno, absl::StrCat("cannot rename ", unfinished, " to ", to));
  unlink(unfinished.c_str());
  return status;
}

}  // namespace

absl::Status PrepareAttemptFolder(const JobFolder& folder, int attempt, int workers) {
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(folder.path()));
  const std::string own = folder.AttemptFolder(attempt);
  TANDEM_RETURN_IF_ERROR(EnsureOwnerFolder(own));
  TANDEM_ASSIGN_OR_RETURN(const std::set<std::string> names, FilesIn(folder.path()));
  for (const std::string& name : names) {
    // The model of an earlier end is not the attempt's.
    if (!IsCheckpoint(name) && name != "best.safetensors") continue;
    TANDEM_RETURN_IF_ERROR(Link(absl::StrCat(folder.path(), "/", name), absl::StrCat(own, "/", name)));
  }
  for (int worker = 0; worker < workers; ++worker) {
    const std::string log = absl::StrCat(folder.path(), "/worker-", worker, ".log");
    // An earlier worker may have left a pipe there, which would block open().
    const int file =
        open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", log));
    close(file);
  }
  // The log of the first worker has no number.
  TANDEM_RETURN_IF_ERROR(Link(folder.path() + "/worker-0.log", folder.LogPath(0)));
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(own));
  TANDEM_RETURN_IF_ERROR(Env::Real()->SyncDirectory(folder.path()));
  return Env::Real()->SyncDirectory(std::filesystem::path(folder.path()).parent_path().string());
}

absl::Status PublishAttemptFiles(const JobFolder& folder, int attempt) {
  const std::string own = folder.AttemptFolder(attempt);
  std::error_code error;
  // No worker has begun, or the attempt has ended.
  if (!std::filesystem::exists(absl::StrCat(own, "/", kSpecFile), error)) return absl::OkStatus();
  // List the job's folder first: a checkpoint that the worker removes in between then stays until the next
  // call.
  TANDEM_ASSIGN_OR_RETURN(const std::set<std::string> published, FilesIn(folder.path()));
  TANDEM_ASSIGN_OR_RETURN(const std::set<std::string> names, FilesIn(own));
  for (const std::string& name : names) {
    if (!IsPublished(name)) continue;
    TANDEM_RETURN_IF_ERROR(Link(absl::StrCat(own, "/", name), absl::StrCat(folder.path(), "/", name)));
  }
  for (const std::string& name : published) {
    if (IsCheckpoint(name) && names.count(name) == 0) unlink(absl::StrCat(folder.path(), "/", name).c_str());
  }
  return Env::Real()->SyncDirectory(folder.path());
}

void RemoveAttemptFiles(const JobFolder& folder, int attempt) {
  // Without this file, PublishAttemptFiles does nothing.
  unlink(absl::StrCat(folder.AttemptFolder(attempt), "/", kSpecFile).c_str());
  const absl::StatusOr<std::set<std::string>> names = FilesIn(folder.AttemptFolder(attempt));
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsModelFile(name)) unlink(absl::StrCat(folder.AttemptFolder(attempt), "/", name).c_str());
  }
}

std::optional<absl::Time> StartOfAttempt(const JobFolder& folder, int attempt) {
  struct stat status;
  if (stat((folder.AttemptFolder(attempt) + "/started").c_str(), &status) != 0) return std::nullopt;
  return absl::TimeFromTimespec(status.st_mtim);
}

std::optional<AttemptEnd> EndOfAttempt(const JobFolder& folder, int attempt) {
  const absl::StatusOr<std::string> text =
      ReadUntrustedFile(folder.AttemptFolder(attempt) + "/ended", kMostLine);
  if (!text.ok()) return std::nullopt;
  absl::string_view rest = absl::StripAsciiWhitespace(*text);
  AttemptEnd end;
  end.was_terminated = absl::ConsumeSuffix(&rest, " SIGTERM");
  if (!absl::SimpleAtoi(rest, &end.exit_code)) return std::nullopt;
  return end;
}

TaskFiles ReadTaskFiles(const JobFolder& folder, int attempt, int workers) {
  const std::string own = folder.AttemptFolder(attempt);
  const auto line = [&](absl::string_view name, int rank) {
    const std::string text =
        ReadUntrustedFile(absl::StrCat(own, "/", name, "-", rank), kMostLine).value_or("");
    return std::string(absl::StripAsciiWhitespace(text));
  };
  TaskFiles files;
  for (int rank = 0; rank < workers; ++rank) {
    if (std::string host = line("started", rank); !host.empty()) files.started[rank] = std::move(host);
    int code = 0;
    if (absl::SimpleAtoi(line("ended", rank), &code)) files.ended[rank] = code;
  }
  return files;
}

}  // namespace tandem
