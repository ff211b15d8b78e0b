#include "engine/backend/collective_time_limit.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tandem {
namespace {

constexpr char kVariable[] = "TANDEM_COLLECTIVE_TIME_LIMIT";
// Covers the collective and all earlier work of the stream.
constexpr absl::Duration kUsual = absl::Minutes(30);

}  // namespace

absl::StatusOr<absl::Duration> CollectiveTimeLimit() {
  const char* const asked = std::getenv(kVariable);
  if (asked == nullptr || *asked == '\0') return kUsual;
  absl::Duration limit;
  if (absl::ParseDuration(asked, &limit) && limit >= kLeastCollectiveTime && limit <= kMostCollectiveTime) {
    return limit;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the environment's ", kVariable, " is '", absl::CHexEscape(absl::string_view(asked).substr(0, 100)),
      "': it must be a duration from ", absl::FormatDuration(kLeastCollectiveTime), " to ",
      absl::FormatDuration(kMostCollectiveTime), " with its unit, such as 90s or 30m"));
}

}  // namespace tandem
