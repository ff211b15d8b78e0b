#include "server/workers/folder_remover.h"

#include <filesystem>
#include <system_error>

#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"
#include "server/workers/kept_weights.h"
#include "server/workers/remove_tree.h"
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
