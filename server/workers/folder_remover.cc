#include "server/workers/folder_remover.h"

#include <spdlog/spdlog.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "server/workers/job_folder.h"
#include "server/workers/job_locks.h"

namespace tandem {

void FolderRemover::Add(std::string folder) {
  MutexLock lock(&mutex_);
  folders_.push_back(std::move(folder));
}

void FolderRemover::AddOrphans(JobMachine* jobs) {
  std::error_code error;
  std::filesystem::directory_iterator entry(jobs_folder_, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const absl::StatusOr<bool> was_deleted = jobs->WasDeleted(entry->path().filename().string());
    // A worker that is still there takes its folder with it when it goes.
    const auto holder = FindHolderOfAny(JobFolder(entry->path().string()));
    if (holder.ok() && holder->has_value()) continue;
    if (was_deleted.ok() && *was_deleted) Add(entry->path().string());
  }
  if (error) spdlog::warn("cannot look for folders of deleted jobs in {}: {}", jobs_folder_, error.message());
}

void FolderRemover::RemoveAll() {
  std::vector<std::string> folders;
  {
    MutexLock lock(&mutex_);
    folders.swap(folders_);
  }
  for (const std::string& folder : folders) {
    std::error_code error;
    std::filesystem::remove_all(folder, error);
    if (error) spdlog::error("cannot remove the folder of a deleted job {}: {}", folder, error.message());
  }
}

}  // namespace tandem
