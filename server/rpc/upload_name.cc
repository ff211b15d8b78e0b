#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"

namespace tandem::rpc {

absl::StatusOr<std::string> ParseUploadName(const std::string& name) {
  absl::string_view id = name;
  if (!absl::ConsumePrefix(&id, "uploads/") || id.empty()) {
    return FieldError("name",
                      absl::StrCat("is '", absl::CHexEscape(name.substr(0, 100)), "', not \"uploads/<id>\""));
  }
  return std::string(id);
}

}  // namespace tandem::rpc
