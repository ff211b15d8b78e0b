#include "engine/base/error_reason.h"

#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"

namespace tandem {
namespace {

constexpr absl::string_view kPayloadUrl = "tandem/error-reason";
constexpr absl::string_view kDetailsUrl = "tandem/error-reason-details";
constexpr absl::string_view kZero("\0", 1);

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!status.ok()) status.SetPayload(kPayloadUrl, absl::Cord(reason));
  return status;
}

std::string GetReason(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::Status WithReasonDetails(absl::Status status, const std::map<std::string, std::string>& details) {
  // Each key and each value ends with a zero byte.
  std::string bytes;
  for (const auto& [key, value] : details) absl::StrAppend(&bytes, key, kZero, value, kZero);
  if (!status.ok()) status.SetPayload(kDetailsUrl, absl::Cord(bytes));
  return status;
}

std::map<std::string, std::string> GetReasonDetails(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kDetailsUrl);
  std::map<std::string, std::string> details;
  if (!payload.has_value()) return details;
  const std::vector<std::string> parts = absl::StrSplit(std::string(*payload), '\0');
  for (size_t i = 0; i + 2 < parts.size(); i += 2) details[parts[i]] = parts[i + 1];
  return details;
}

}  // namespace tandem
