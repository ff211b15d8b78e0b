#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/error_reason.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

absl::StatusOr<std::string> CheckName(absl::string_view kind, const std::string& name, std::string id) {
  if (name.empty()) {
    return FieldError("name", absl::StrCat("is required: the ", kind, "'s name, \"", kind, "s/<id>\""));
  }
  if (id.empty()) {
    return FieldError("name", absl::StrCat("'", absl::CHexEscape(name.substr(0, 80)),
                                           "' is not the name of a ", kind, "; write \"", kind, "s/<id>\""));
  }
  return id;
}

absl::Status ExplainNotFound(const absl::Status& status, absl::string_view kind, const std::string& name,
                             absl::string_view reason) {
  if (!absl::IsNotFound(status)) return status;
  return WithReason(
      absl::NotFoundError(absl::StrCat("there is no ", kind, " '", absl::CHexEscape(name.substr(0, 80)),
                                       "'; it may have been deleted")),
      reason);
}

absl::StatusOr<std::string> ParseJobName(const std::string& name) {
  return CheckName("job", name, JobId(name));
}

absl::Status ExplainJobError(const absl::Status& status, const std::string& name) {
  return ExplainNotFound(status, "job", name, "JOB_NOT_FOUND");
}

}  // namespace tandem::rpc
