#include "server/workers/folder_remover.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/unique_fd.h"
#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"
#include "server/workers/kept_weights.h"
#include "server/workers/owner_mode.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

// Returns true if the kept weights of the job with this folder may be needed. If the job is unknown, they are
// kept as long as its folder exists.
bool MayBeNeeded(const absl::StatusOr<v1::Job>& job, const std::string& folder) {
  if (job.ok()) return MayNeedKeptWeights(*job);
  std::error_code error;
  return !absl::IsNotFound(job.status()) || std::filesystem::exists(folder, error) || error;
}

// Each level takes a file descriptor. Deeper folders are moved up.
constexpr int kMostDepth = 32;

// Opens a folder; restores its mode first if it forbids reading or removing. errno has the reason of a
// failure.
UniqueFd OpenFolder(int parent, const char* name) {
  const UniqueFd found(openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!found.valid()) return UniqueFd();
  // If another account owns the folder, the next call fails.
  RestoreOwnerMode(found.get());
  return UniqueFd(openat(found.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

class TreeRemoval {
 public:
  TreeRemoval(int top, const std::function<bool()>& stops) : top_(top), stops_(stops) {}

  // Removes the open folder's entries once. Returns the first error.
  absl::Status Empty(int folder, int depth);
  // The number of removals and moves so far.
  int64_t changes() const { return changes_; }
  bool stopped() const { return stopped_; }

 private:
  absl::Status Remove(int folder, const char* name, int depth);
  // Moves a folder into the top folder.
  bool MoveUp(int folder, const char* name);

  const int top_;
  const std::function<bool()>& stops_;
  int64_t changes_ = 0;
  int64_t moves_ = 0;
  bool stopped_ = false;
};

absl::Status TreeRemoval::Empty(int folder, int depth) {
  // A separate descriptor, because the stream closes it.
  const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(fd < 0 ? nullptr : fdopendir(fd), closedir);
  if (entries == nullptr) return absl::ErrnoToStatus(errno, "cannot look into a folder");
  absl::Status status;
  while (const dirent* const entry = readdir(entries.get())) {
    const absl::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    stopped_ = stopped_ || stops_();
    if (stopped_) break;
    status.Update(Remove(folder, entry->d_name, depth));
  }
  return status;
}

bool TreeRemoval::MoveUp(int folder, const char* name) {
  // Other entries may have such names.
  for (int tries = 0; tries < 1000; ++tries) {
    if (renameat(folder, name, top_, absl::StrCat(".removed-", moves_++).c_str()) == 0) return true;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR) return false;
  }
  return false;
}

absl::Status TreeRemoval::Remove(int folder, const char* name, int depth) {
  absl::Status inside;
  bool gone = unlinkat(folder, name, 0) == 0;
  if (!gone && errno == EISDIR) {
    const UniqueFd opened = OpenFolder(folder, name);
    if (opened.valid() && depth < kMostDepth) inside = Empty(opened.get(), depth + 1);
    gone = unlinkat(folder, name, AT_REMOVEDIR) == 0;
    if (!gone && errno == ENOTEMPTY && depth == kMostDepth) gone = MoveUp(folder, name);
  }
  if (gone) ++changes_;
  if (gone || stopped_ || errno == ENOENT) return absl::OkStatus();
  if (!inside.ok()) return inside;
  return absl::ErrnoToStatus(errno, absl::StrCat("its entry '", absl::CHexEscape(name), "'"));
}

// Removes a file, or a folder with everything in it, if it exists. Also removes folders that a worker of this
// account closed, or that are deeper than a path allows. Follows no links, and has few files open at a time.
// Calls `stops` before each entry, and stops if it returns true. Otherwise returns an error if something
// stays.
absl::Status RemoveTree(const std::string& path, const std::function<bool()>& stops) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  if (errno != EISDIR) return absl::ErrnoToStatus(errno, "unlink");
  const UniqueFd top = OpenFolder(AT_FDCWD, path.c_str());
  if (!top.valid()) return absl::ErrnoToStatus(errno, "open");
  TreeRemoval removal(top.get(), stops);
  absl::Status inside;
  int64_t before = 0;
  // Repeat for folders that were moved up, and for entries that a listing missed during removals.
  do {
    before = removal.changes();
    inside = removal.Empty(top.get(), 0);
    if (removal.stopped() || rmdir(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  } while (removal.changes() != before);
  return inside.ok() ? absl::ErrnoToStatus(errno, "rmdir") : inside;
}

}  // namespace

void FolderRemover::Add(const std::string& folder) {
  MutexLock lock(&mutex_);
  paths_.push_back(folder);
  paths_.push_back(KeptWeightsPath(folder));
}

void FolderRemover::AddKeptWeights(const std::string& folder) {
  MutexLock lock(&mutex_);
  kept_.push_back(KeptWeightsPath(folder));
}

std::vector<std::string> FolderRemover::ListFolders() const {
  std::vector<std::string> folders;
  std::error_code error;
  std::filesystem::directory_iterator entry(jobs_folder_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    folders.push_back(entry->path().string());
  }
  if (error) spdlog::warn("cannot look for folders of deleted jobs in {}: {}", jobs_folder_, error.message());
  return folders;
}

void FolderRemover::AddOrphans(JobMachine* jobs, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const absl::StatusOr<bool> was_deleted =
        jobs->WasDeleted(std::filesystem::path(folder).filename().string());
    // If a worker still runs, the supervisor removes the folder after the worker's end.
    const absl::StatusOr<RunningWorkers> running = FindRunningWorkers(JobFolder(folder));
    if (running.ok() && !running->pids.empty()) continue;
    if (was_deleted.ok() && *was_deleted) Add(folder);
  }
}

void FolderRemover::AddKeptOrphans(JobMachine* jobs) {
  const std::string kept_folder = KeptWeightsFolder(jobs_folder_);
  std::error_code error;
  // Created with the first kept weights.
  if (!std::filesystem::exists(kept_folder, error)) return;
  std::filesystem::directory_iterator entry(kept_folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string id = JobOfKeptWeights(entry->path().string());
    if (id.empty()) continue;
    const std::string folder = jobs_folder_ + "/" + id;
    if (!MayBeNeeded(jobs->Get(id), folder)) AddKeptWeights(folder);
  }
  if (error) spdlog::warn("cannot look for kept weights in {}: {}", kept_folder, error.message());
}

FolderRemover::~FolderRemover() { Stop(); }

void FolderRemover::Start(JobMachine* jobs, std::vector<std::string> folders) {
  thread_ = std::thread([this, jobs, folders = std::move(folders)] {
    AddOrphans(jobs, folders);
    Run();
  });
}

void FolderRemover::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool FolderRemover::Stopping() {
  MutexLock lock(&mutex_);
  return stopping_;
}

void FolderRemover::Run() {
  while (true) {
    std::string path;
    {
      MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &FolderRemover::HasWork));
      if (stopping_) return;
      path = std::move(paths_.front());
      paths_.pop_front();
    }
    Remove(path);
  }
}

void FolderRemover::Remove(const std::string& path) {
  const absl::Status removed = RemoveTree(path, [this] { return Stopping(); });
  if (removed.ok()) return;
  spdlog::error("cannot remove {}, which no job needs any more: {}", path, std::string(removed.message()));
}

void FolderRemover::RemoveKeptWeights() {
  std::vector<std::string> paths;
  {
    MutexLock lock(&mutex_);
    paths.swap(kept_);
  }
  for (const std::string& path : paths) Remove(path);
}

void FolderRemover::RemoveAll() {
  RemoveKeptWeights();
  std::deque<std::string> paths;
  {
    MutexLock lock(&mutex_);
    paths.swap(paths_);
  }
  for (const std::string& path : paths) Remove(path);
}

}  // namespace tandem
