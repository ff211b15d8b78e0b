#include "server/fetch/origin.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace tandem {
namespace {

constexpr absl::string_view kRetryAfterUrl = "tandem/retry-after-seconds";
constexpr int kLongestWait = 60;

}  // namespace

bool IsUsable(const HttpResponse& response) {
  const int status = response.status;
  return status == 200 || status == 206 || status == 304 || status == 412 || status == 416;
}

absl::Status PatienceAsked(const HttpResponse& response) {
  switch (response.status) {
    case 408:
    case 425:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      break;
    default:
      return absl::OkStatus();
  }
  absl::Status status =
      absl::UnavailableError(absl::StrCat("the server answered with HTTP status ", response.status));
  int seconds = 0;
  if (absl::SimpleAtoi(response.Header("retry-after"), &seconds) && seconds > 0) {
    status.SetPayload(kRetryAfterUrl, absl::Cord(absl::StrCat(std::min(seconds, kLongestWait))));
  }
  return status;
}

int RetryAfterSeconds(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kRetryAfterUrl);
  int seconds = 0;
  if (payload.has_value() && !absl::SimpleAtoi(std::string(*payload), &seconds)) seconds = 0;
  return seconds;
}

}  // namespace tandem
