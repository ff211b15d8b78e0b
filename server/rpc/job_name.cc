#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

absl::StatusOr<std::string> ParseJobName(const std::string& name) {
  if (name.empty()) return FieldError("name", "is required: the job's name, \"jobs/<id>\"");
  std::string id = JobId(name);
  if (id.empty()) {
    return FieldError("name", absl::StrCat("'", absl::CHexEscape(name.substr(0, 80)),
                                           "' is not the name of a job; write \"jobs/<id>\""));
  }
  return id;
}

absl::Status ExplainJobError(const absl::Status& status, const std::string& name) {
  if (!absl::IsNotFound(status)) return status;
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no job '", absl::CHexEscape(name.substr(0, 80)),
                                       "'; it may have been deleted")),
      "JOB_NOT_FOUND");
}

}  // namespace tandem::rpc
