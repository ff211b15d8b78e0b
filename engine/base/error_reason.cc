#include "engine/base/error_reason.h"

#include "absl/strings/cord.h"
#include "absl/types/optional.h"

namespace tandem {
namespace {

constexpr absl::string_view kPayloadUrl = "tandem/error-reason";

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  if (!status.ok()) status.SetPayload(kPayloadUrl, absl::Cord(reason));
  return status;
}

std::string GetReason(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

}  // namespace tandem
