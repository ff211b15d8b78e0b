#include "server/workers/job_disk_use.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/records.h"

namespace tandem {
namespace {

// After a job's end its worker may still write, and its checkpoints be removed.
constexpr int kLastMeasurements = 2;

// Bytes of the regular files below a folder; nothing where there is no such folder.
std::optional<int64_t> BytesBelow(const std::string& folder) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error), end;
  if (error) return std::nullopt;
  int64_t bytes = 0;
  for (; entry != end; entry.increment(error)) {
    struct stat info = {};
    if (lstat(entry->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) bytes += info.st_size;
    if (error) break;
  }
  return bytes;
}

}  // namespace

void JobDiskUse::Start(std::function<std::vector<Owned>()> list) {
  thread_ = std::thread([this, list = std::move(list)] { Run(list); });
}

void JobDiskUse::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void JobDiskUse::Run(const std::function<std::vector<Owned>()>& list) {
  // What was told meanwhile is newer.
  for (const Owned& owned : list()) Add(owned, /*replaces=*/false);
  while (true) {
    std::vector<std::string> due;
    {
      MutexLock lock(&mutex_);
      for (auto& [id, use] : uses_) {
        if (!use.is_active && use.measurements == 0) continue;
        if (!use.is_active) --use.measurements;
        due.push_back(id);
      }
    }
    for (const std::string& id : due) {
      {
        MutexLock lock(&mutex_);
        if (stopping_) return;
      }
      Measure(id);
    }
    MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_);
    if (stopping_) return;
  }
}

void JobDiskUse::Count(const std::string& user, int64_t bytes) {
  if ((bytes_[user] += bytes) == 0) bytes_.erase(user);
}

void JobDiskUse::Add(const Owned& owned, bool replaces) {
  MutexLock lock(&mutex_);
  const auto [found, made] = uses_.try_emplace(owned.job_id);
  if (!made && !replaces) return;
  Use& use = found->second;
  use.user = owned.user;
  use.is_active = owned.is_active;
  use.measurements = kLastMeasurements;
}

void JobDiskUse::Settle(const std::string& job) {
  MutexLock lock(&mutex_);
  const auto found = uses_.find(job);
  if (found == uses_.end()) return;
  found->second.is_active = false;
  found->second.measurements = kLastMeasurements;
}

void JobDiskUse::Measure(const std::string& job_id) {
  const std::optional<int64_t> bytes = BytesBelow(absl::StrCat(jobs_folder_, "/", job_id));
  MutexLock lock(&mutex_);
  const auto found = uses_.find(job_id);
  // It was deleted meanwhile.
  if (found == uses_.end()) return;
  Use& use = found->second;
  Count(use.user, bytes.value_or(0) - use.bytes);
  use.bytes = bytes.value_or(0);
  if (!bytes.has_value() && !use.is_active) uses_.erase(found);
}

int64_t JobDiskUse::BytesOf(const std::string& user) const {
  MutexLock lock(&mutex_);
  const auto found = bytes_.find(user);
  return found == bytes_.end() ? 0 : found->second;
}

void JobDiskUse::OnQueued(const v1::Job& job) {
  Add({.job_id = JobId(job.name()), .user = job.user(), .is_active = true}, /*replaces=*/true);
}

void JobDiskUse::OnPaused(const v1::Job& job) { Settle(JobId(job.name())); }

void JobDiskUse::OnTerminal(const v1::Job& job) { Settle(JobId(job.name())); }

void JobDiskUse::OnDeleted(const v1::Job& job) {
  MutexLock lock(&mutex_);
  const auto found = uses_.find(JobId(job.name()));
  if (found == uses_.end()) return;
  Count(found->second.user, -found->second.bytes);
  uses_.erase(found);
}

}  // namespace tandem
