#include "server/rpc/permissions.h"

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"

namespace tandem::rpc {

absl::Status CheckAdmin(const Caller& caller, absl::string_view what) {
  if (caller.is_admin) return absl::OkStatus();
  return WithReason(absl::PermissionDeniedError(
                        absl::StrCat(what, " is for administrators, and \"", caller.user, "\" is none")),
                    "ADMIN_ONLY");
}

absl::Status CheckPriority(const Caller& caller, int priority) {
  if (caller.is_admin || priority <= 0) return absl::OkStatus();
  return WithReason(absl::PermissionDeniedError(absl::StrCat("priority: is ", priority,
                                                             "; above 0 it is for administrators, and \"",
                                                             caller.user, "\" is none")),
                    "PRIORITY_NOT_ALLOWED");
}

absl::Status CheckOwner(const RpcContext& context, const Caller& caller, const std::string& id,
                        const std::string& name) {
  if (caller.is_admin) return absl::OkStatus();
  const absl::StatusOr<v1::Job> job = context.jobs->Get(id);
  if (!job.ok()) return ExplainJobError(job.status(), name);
  if (job->user() == caller.user) return absl::OkStatus();
  return WithReason(
      absl::PermissionDeniedError(absl::StrCat("the job \"", name, "\" is \"", job->user(), "\"'s: \"",
                                               caller.user, "\" may look at it, not change it")),
      "NOT_YOUR_JOB");
}

}  // namespace tandem::rpc
