#include "server/rpc/permissions.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"
#include "server/store/records.h"

namespace tandem::rpc {

absl::Status CheckPriority(const Caller& caller, int priority) {
  if (caller.is_admin() || priority <= 0) return absl::OkStatus();
  return WithReason(absl::PermissionDeniedError(absl::StrCat(
                        "priority: is ", priority, "; only administrators may use more than 0, and \"",
                        caller.user, "\" is not an administrator")),
                    "PRIORITY_NOT_ALLOWED");
}

absl::Status CheckIsOwner(const Caller& caller, absl::string_view what, const std::string& owner,
                          absl::string_view reason) {
  if (caller.is_admin() || (!owner.empty() && owner == caller.user)) return absl::OkStatus();
  return WithReason(
      absl::PermissionDeniedError(
          owner.empty() ? absl::StrCat("cannot change ", what, " as \"", caller.user,
                                       "\": it has no owner, so only administrators may change it")
                        : absl::StrCat("cannot change ", what, " as \"", caller.user, "\": it belongs to \"",
                                       owner, "\"")),
      reason);
}

absl::Status CheckDatasetOwner(const Caller& caller, v1::DeleteDatasetRequest* request,
                               const DatasetRegistry* registry, const DatasetCatalog* datasets) {
  if (caller.is_admin()) return absl::OkStatus();
  const std::string id = DatasetId(request->name());
  std::string owner;
  if (const std::optional<v1::Dataset> registered = registry->Find(id); registered.has_value()) {
    owner = registered->user();
    if (request->etag().empty()) request->set_etag(registered->etag());
  } else {
    // Other checks report a set in a data folder or a missing set.
    const absl::StatusOr<v1::Dataset> other = datasets->DescribeById(id);
    if (!other.ok() || other->origin() != v1::DATASET_ORIGIN_FETCHED) {
      // No registered set has this etag, so a set that somebody registers right now is not deleted.
      if (request->etag().empty()) request->set_etag("none");
      return absl::OkStatus();
    }
  }
  return CheckIsOwner(caller, absl::StrCat("the data set \"", DatasetName(id), "\""), owner,
                      "NOT_YOUR_DATASET");
}

absl::Status CheckUploadOwner(const Caller& caller, const std::string& id, Uploads* uploads) {
  if (caller.is_admin()) return absl::OkStatus();
  TANDEM_ASSIGN_OR_RETURN(const std::string owner, uploads->OwnerOf(id));
  return CheckIsOwner(caller, absl::StrCat("the upload \"uploads/", id, "\""), owner, "NOT_YOUR_UPLOAD");
}

absl::Status CheckOwner(const Caller& caller, const std::string& id, const std::string& name,
                        JobMachine* jobs) {
  if (caller.is_admin()) return absl::OkStatus();
  const absl::StatusOr<v1::Job> job = jobs->Get(id);
  if (!job.ok()) return ExplainJobError(job.status(), name);
  return CheckIsOwner(caller, absl::StrCat("the job \"", name, "\""), job->user(), "NOT_YOUR_JOB");
}

}  // namespace tandem::rpc
