#include "server/workers/job_locks.h"

#include <filesystem>
#include <system_error>

#include "engine/base/status_macros.h"

namespace tandem {
namespace {

// As many as a job may have replicas.
constexpr int kMostLocks = 1024;

}  // namespace

int CountLocks(const JobFolder& folder) {
  int count = 1;
  std::error_code error;
  while (count < kMostLocks && std::filesystem::exists(folder.LockPath(count), error)) ++count;
  return count;
}

absl::StatusOr<std::optional<WorkerLock::Holder>> FindHolderOfAny(const JobFolder& folder) {
  const int count = CountLocks(folder);
  for (int worker = 0; worker < count; ++worker) {
    TANDEM_ASSIGN_OR_RETURN(const std::optional<WorkerLock::Holder> holder,
                            WorkerLock::FindHolder(folder.LockPath(worker)));
    if (holder.has_value()) return holder;
  }
  return std::nullopt;
}

}  // namespace tandem
