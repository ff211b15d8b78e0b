#include "engine/base/retry_delay.h"

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

constexpr absl::string_view kPayloadUrl = "tandem/retry-delay-milliseconds";

}  // namespace

absl::Status WithRetryDelay(absl::Status status, absl::Duration delay) {
  if (status.ok()) return status;
  // At least a millisecond, so that no client retries at once.
  const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(delay, absl::Milliseconds(1)));
  status.SetPayload(kPayloadUrl, absl::Cord(absl::StrCat(milliseconds < 1 ? 1 : milliseconds)));
  return status;
}

absl::optional<absl::Duration> GetRetryDelay(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  int64_t milliseconds = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return absl::nullopt;
  return absl::Milliseconds(milliseconds);
}

}  // namespace tandem
