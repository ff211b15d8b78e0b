#include "server/workers/job_disk_use.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/records.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

// After a job's end, its worker may still write, and old checkpoints may be removed.
constexpr int kLastMeasurements = 2;

// Users delete jobs to get room soon.
constexpr absl::Duration kRemovalInterval = absl::Seconds(1);

// The unit of st_blocks, whatever the file system's block size.
constexpr int64_t kBlockBytes = 512;

// More than any job has or any user may have. Counts for files that a worker has hidden: in a closed folder,
// too deep, or after too many entries.
constexpr int64_t kMostBytes = int64_t{1} << 50;
// Bounds a user's total, so that sums do not overflow.
constexpr int64_t kMostTotal = int64_t{1} << 62;
constexpr int kMostDepth = 16;
// The most bytes of the paths of folders that are still to be read.
constexpr size_t kMostPathBytes = 4 << 20;

bool IsGone(const std::string& folder) {
  struct stat info = {};
  return lstat(folder.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

}  // namespace

std::optional<int64_t> JobDiskUse::Look(const std::string& job_id) const {
  int64_t bytes = 0;
  const auto hide = [&bytes] { bytes = kMostBytes; };
  const auto add = [&bytes](const struct stat& info) {
    // The space on the disk, which may be less or more than the file's size.
    bytes += std::min<int64_t>(info.st_blocks, kMostBytes / kBlockBytes) * kBlockBytes;
    bytes = std::min(bytes, kMostBytes);
  };
  const std::string folder = absl::StrCat(jobs_folder_, "/", job_id);
  if (IsGone(folder)) return std::nullopt;
  struct stat info = {};
  // Only one folder is open at a time, whatever a worker creates.
  std::vector<std::pair<std::string, int>> folders = {{folder, 0}};
  size_t path_bytes = folder.size();
  int entries = 0;
  while (!folders.empty()) {
    const auto [path, depth] = std::move(folders.back());
    folders.pop_back();
    path_bytes -= path.size();
    std::error_code error;
    std::filesystem::directory_iterator entry(path, error), end;
    if (error == std::errc::permission_denied || error == std::errc::filename_too_long) hide();
    for (; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().string();
      if (++entries > most_entries_ || path_bytes > kMostPathBytes) {
        hide();
        folders.clear();
        break;
      }
      if (lstat(name.c_str(), &info) != 0) {
        if (errno == EACCES || errno == ENAMETOOLONG) hide();
      } else if (S_ISREG(info.st_mode)) {
        add(info);
      } else if (S_ISDIR(info.st_mode) && depth < kMostDepth) {
        folders.emplace_back(name, depth + 1);
        path_bytes += name.size();
      } else if (S_ISDIR(info.st_mode)) {
        hide();
      }
    }
  }
  const std::string kept = KeptWeightsPath(folder);
  if (lstat(kept.c_str(), &info) == 0 && S_ISREG(info.st_mode)) add(info);
  return bytes;
}

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
  // Observer calls meanwhile are newer, so do not replace their entries.
  for (const Owned& owned : list()) Add(owned, /*replaces=*/false);
  while (true) {
    std::vector<std::string> due;
    {
      MutexLock lock(&mutex_);
      for (auto& [id, use] : uses_) {
        const bool is_watched = use.is_active || use.is_deleted;
        if (!is_watched && use.measurements == 0) continue;
        if (!is_watched) --use.measurements;
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
    for (absl::Duration left = interval_; left > absl::ZeroDuration(); left -= kRemovalInterval) {
      {
        MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&stopping_), std::min(left, kRemovalInterval));
        if (stopping_) return;
      }
      ForgetRemoved();
    }
  }
}

void JobDiskUse::ForgetRemoved() {
  std::vector<std::string> deleted;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, use] : uses_) {
      if (use.is_deleted) deleted.push_back(id);
    }
  }
  for (const std::string& id : deleted) {
    if (IsGone(absl::StrCat(jobs_folder_, "/", id))) Measure(id);
  }
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
  const std::optional<int64_t> bytes = Look(job_id);
  MutexLock lock(&mutex_);
  const auto found = uses_.find(job_id);
  // The job was deleted and forgotten.
  if (found == uses_.end()) return;
  Use& use = found->second;
  absl::int128& total = totals_[use.user];
  total += bytes.value_or(0) - use.bytes;
  use.bytes = bytes.value_or(0);
  if (total == 0) totals_.erase(use.user);
  if (!bytes.has_value() && !use.is_active) uses_.erase(found);
}

int64_t JobDiskUse::BytesOf(const std::string& user) const {
  MutexLock lock(&mutex_);
  const auto found = totals_.find(user);
  if (found == totals_.end()) return 0;
  return static_cast<int64_t>(std::min<absl::int128>(found->second, kMostTotal));
}

bool JobDiskUse::IsRemoving(const std::string& user) const {
  MutexLock lock(&mutex_);
  return std::any_of(uses_.begin(), uses_.end(), [&user](const auto& entry) {
    return entry.second.is_deleted && entry.second.user == user;
  });
}

void JobDiskUse::OnMoved(const v1::Job& job) {
  const std::string id = JobId(job.name());
  if (job.state() == v1::JOB_STATE_QUEUED) {
    Add({.job_id = id, .user = job.user(), .is_active = true}, /*replaces=*/true);
  }
  if (IsAtRest(job.state())) Settle(id);
}

void JobDiskUse::OnDeleted(const v1::Job& job) {
  MutexLock lock(&mutex_);
  // Add it even if unknown: its folder may still exist, and stay.
  Use& use = uses_[JobId(job.name())];
  use.user = job.user();
  use.is_active = false;
  use.is_deleted = true;
}

}  // namespace tandem
