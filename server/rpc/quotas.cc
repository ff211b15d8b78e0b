#include "server/rpc/quotas.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"

namespace tandem::rpc {
namespace {

// A deleted job's folder is usually gone in a moment.
constexpr absl::Duration kRemovalDelay = absl::Seconds(2);

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (int64_t{1} << 20));
}

}  // namespace

absl::Status Quotas::Check(const std::string& user, absl::FunctionRef<int64_t()> uploaded,
                           int64_t added) const {
  const int64_t most = quota_(user).max_disk_bytes;
  if (most <= 0 || disk_use_ == nullptr) return absl::OkStatus();
  const int64_t used = disk_use_(user) + uploaded();
  // A full quota accepts nothing more.
  if (added > 0 ? added <= most - used : used < most) return absl::OkStatus();
  const bool is_removing = is_removing_ != nullptr && is_removing_(user);
  absl::Status full = WithReason(
      absl::ResourceExhaustedError(absl::StrCat(
          "cannot take more data of \"", user, "\": jobs and uploads use ", Mebibytes(used), " of at most ",
          Mebibytes(most), added > 0 ? absl::StrCat(", and this needs ", Mebibytes(added)) : "",
          " (--user-max-disk, or the token's max_disk_bytes); ",
          is_removing ? "deleted jobs are still being removed, try again soon"
                      : "delete jobs, data sets or uploads")),
      "DISK_QUOTA_EXCEEDED");
  return is_removing ? WithRetryDelay(std::move(full), kRemovalDelay) : full;
}

absl::Status Quotas::CheckDiskUse(const std::string& user) const {
  return Check(
      user, [&] { return uploads_->BytesOf(user); }, /*added=*/0);
}

absl::Status Quotas::CheckUpload(const std::string& user, int64_t uploaded, int64_t added) const {
  return Check(
      user, [uploaded] { return uploaded; }, added);
}

}  // namespace tandem::rpc
