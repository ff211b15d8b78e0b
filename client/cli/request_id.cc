#include "client/cli/request_id.h"

#include <cstdint>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/lib/status_details.h"

namespace tandem::cli {

std::string RandomRequestId() {
  absl::BitGen random;
  return absl::StrCat("cli-", absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16),
                      absl::Hex(absl::Uniform<uint64_t>(random), absl::kZeroPad16));
}

bool MayHaveArrived(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) ||
         (absl::IsUnavailable(status) && client::ErrorReason(status).empty() &&
          !absl::StartsWith(status.message(), "failed to connect"));
}

}  // namespace tandem::cli
