#include "server/daemon/begin_anew.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "engine/base/env.h"
#include "engine/base/status_macros.h"
#include "server/store/state_folder.h"
#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"

namespace tandem {
namespace {

constexpr char kDatabase[] = "tandem.db";
// The reserve has no content.
constexpr char kReserve[] = "tandem.db-reserve";

bool IsFolderOfDatabase(const std::string& name) {
  return name == "jobs" || name == "uploads" || name == "backups" || name == "kept-weights";
}

// Returns the names of the database's files and folders in `folder`, sorted, files first.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<std::string> names, Env::Real()->ListFolder(folder));
  std::vector<std::string> known;
  for (std::string& name : names) {
    std::error_code error;
    // Count a folder that cannot be read: it may have content.
    const bool counts = IsFolderOfDatabase(name)
                            ? !std::filesystem::is_empty(folder + "/" + name, error) || error
                            : absl::StartsWith(name, kDatabase) && name != kReserve;
    if (counts) known.push_back(std::move(name));
  }
  std::sort(known.begin(), known.end(), [](const std::string& one, const std::string& other) {
    return std::pair(IsFolderOfDatabase(one), one) < std::pair(IsFolderOfDatabase(other), other);
  });
  return known;
}

// Running workers survive the daemon, and the next daemon would lease their devices to other jobs.
absl::Status CheckNoWorkerRuns(const std::string& jobs_folder) {
  std::error_code error;
  std::vector<std::string> running;
  for (std::filesystem::directory_iterator entry(jobs_folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const JobFolder folder(entry->path().string());
    // If a worker's state cannot be read, the worker may run. Return the error.
    TANDEM_ASSIGN_OR_RETURN(const RunningWorkers workers, FindRunningWorkers(folder));
    for (const pid_t pid : workers.pids) {
      running.push_back(absl::StrCat("process ", pid, " of job ", entry->path().filename().string()));
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat("cannot list ", jobs_folder));
  }
  if (running.empty()) return absl::OkStatus();
  std::sort(running.begin(), running.end());
  return absl::FailedPreconditionError(
      absl::StrCat("cannot begin anew: workers still run: ", absl::StrJoin(running, ", "),
                   "; end them with `kill` first, or start the daemon normally, which takes them over"));
}

}  // namespace

std::string RemainsOf(const std::string& state_folder) {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(state_folder);
  if (absl::IsNotFound(names.status())) return "";
  if (!names.ok()) return "unreadable files";
  std::vector<std::string> shown;
  for (const std::string& name : *names) {
    if (name == kDatabase) continue;
    shown.push_back(IsFolderOfDatabase(name) ? name + "/" : name);
  }
  return absl::StrJoin(shown, ", ");
}

absl::StatusOr<std::string> BeginAnew(const std::string& state_folder) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<StateFolder> folder, StateFolder::Lock(state_folder));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder->path()));
  if (names.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot begin anew: ", folder->path(),
                     " has no database and nothing that belongs to one; start tandemd normally"));
  }
  TANDEM_RETURN_IF_ERROR(CheckNoWorkerRuns(folder->JobsFolder()));
  const std::string first =
      absl::StrCat(folder->path(), "/before-",
                   absl::FormatTime("%Y%m%dT%H%M%SZ", Clock::Real()->Now(), absl::UTCTimeZone()));
  std::string aside = first;
  std::error_code error;
  for (int i = 2; std::filesystem::exists(aside, error); ++i) aside = absl::StrCat(first, "-", i);
  Env* const env = Env::Real();
  if (mkdir(aside.c_str(), 0700) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot create the folder ", aside));
  }
  // Move the database first: a database without its jobs' files would be incomplete.
  for (const std::string& name : names) {
    TANDEM_RETURN_IF_ERROR(env->RenameFile(folder->path() + "/" + name, aside + "/" + name));
  }
  TANDEM_RETURN_IF_ERROR(env->SyncDirectory(aside));
  TANDEM_RETURN_IF_ERROR(env->SyncDirectory(folder->path()));
  return absl::StrCat(absl::StrJoin(names, ", "), " of ", folder->path(), " are now in ", aside,
                      ".\nThe daemon does not use this folder: remove it if nobody needs its content, or "
                      "move everything back while no daemon runs to undo this.\n");
}

}  // namespace tandem
