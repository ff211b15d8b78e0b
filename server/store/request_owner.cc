#include "server/store/request_owner.h"

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"

namespace tandem {

absl::Status CheckRequestOwner(const std::string& request_id, const std::string& owner,
                               const std::string& user) {
  if (owner == user) return absl::OkStatus();
  return WithReason(absl::AlreadyExistsError(absl::StrCat(
                        "request_id: \"", request_id, "\" was already used by another user; use a new one")),
                    "REQUEST_ID_USED");
}

}  // namespace tandem
