#include "server/workers/job_disk_use.h"

#include <sys/stat.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/store/records.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

// After a job's end its worker may still write, and its checkpoints be removed.
constexpr int kLastMeasurements = 2;

// As models and checkpoints do.
constexpr char kWeightsEnding[] = ".safetensors";

}  // namespace

bool JobDiskUse::Look(const std::string& job_id, Files* files) const {
  const auto add = [files](const std::filesystem::path& path) {
    struct stat info = {};
    if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
    if (path.extension() == kWeightsEnding) {
      files->weights.emplace_back(FileId(info.st_dev, info.st_ino), info.st_size);
    } else {
      files->bytes += info.st_size;
    }
  };
  const std::string folder = absl::StrCat(jobs_folder_, "/", job_id);
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error), end;
  if (error) return false;
  for (; entry != end; entry.increment(error)) {
    add(entry->path());
    if (error) break;
  }
  add(KeptWeightsPath(folder));
  return true;
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

void JobDiskUse::Count(const Use& use) {
  Total& total = totals_[use.user];
  total.bytes += use.files.bytes;
  for (const auto& [id, bytes] : use.files.weights) {
    Total::Weights& weights = total.weights[id];
    ++weights.names;
    // The same as before, unless the file that was known under this number is gone.
    total.bytes += bytes - std::exchange(weights.bytes, bytes);
  }
}

void JobDiskUse::Uncount(const Use& use) {
  const auto found = totals_.find(use.user);
  if (found == totals_.end()) return;
  Total& total = found->second;
  total.bytes -= use.files.bytes;
  for (const auto& [id, bytes] : use.files.weights) {
    const auto weights = total.weights.find(id);
    if (--weights->second.names > 0) continue;
    total.bytes -= weights->second.bytes;
    total.weights.erase(weights);
  }
  if (total.bytes == 0 && total.weights.empty()) totals_.erase(found);
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
  Files files;
  const bool has_folder = Look(job_id, &files);
  MutexLock lock(&mutex_);
  const auto found = uses_.find(job_id);
  // It was deleted meanwhile.
  if (found == uses_.end()) return;
  Use& use = found->second;
  Uncount(use);
  use.files = std::move(files);
  Count(use);
  if (!has_folder && !use.is_active) uses_.erase(found);
}

int64_t JobDiskUse::BytesOf(const std::string& user) const {
  MutexLock lock(&mutex_);
  const auto found = totals_.find(user);
  return found == totals_.end() ? 0 : found->second.bytes;
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
  Uncount(found->second);
  uses_.erase(found);
}

}  // namespace tandem
