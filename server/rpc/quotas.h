#ifndef TANDEM_SERVER_RPC_QUOTAS_H_
#define TANDEM_SERVER_RPC_QUOTAS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/datasets/uploads.h"
#include "server/scheduler/user_quota.h"

namespace tandem::rpc {

// The limits of users that are checked before something is created. LIMITS.md lists all limits. Thread-safe.
class Quotas {
 public:
  // See RpcServer::Parts for the functions. `uploads` must outlive this object.
  Quotas(std::function<UserQuota(const std::string& user)> quota,
         std::function<int64_t(const std::string& user)> disk_use,
         std::function<bool(const std::string& user)> is_removing, Uploads* uploads)
      : quota_(std::move(quota)),
        disk_use_(std::move(disk_use)),
        is_removing_(std::move(is_removing)),
        uploads_(uploads) {}

  // Returns the most queued jobs of the user; 0: no limit.
  int MaxQueuedJobs(const std::string& user) const { return quota_(user).max_queued_jobs; }

  // RESOURCE_EXHAUSTED if the user's jobs, uploads and data sets use up the user's disk quota.
  absl::Status CheckDiskUse(const std::string& user) const;

  // RESOURCE_EXHAUSTED if a new upload of `added` bytes would exceed the user's disk quota. `uploaded` are
  // the bytes of the user's existing uploads and data sets. For Uploads::Allow.
  absl::Status CheckUpload(const std::string& user, int64_t uploaded, int64_t added) const;

 private:
  // `added` 0: a new thing of unknown size.
  absl::Status Check(const std::string& user, absl::FunctionRef<int64_t()> uploaded, int64_t added) const;

  const std::function<UserQuota(const std::string& user)> quota_;
  const std::function<int64_t(const std::string& user)> disk_use_;
  const std::function<bool(const std::string& user)> is_removing_;
  Uploads* const uploads_;
};

}  // namespace tandem::rpc

#endif  // TANDEM_SERVER_RPC_QUOTAS_H_
