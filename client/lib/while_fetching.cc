#include "client/lib/while_fetching.h"

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "client/lib/status_details.h"

namespace tandem::client {

bool IsBeingFetched(const absl::Status& status) {
  return absl::IsUnavailable(status) && ErrorReason(status) == "DATA_BEING_FETCHED";
}

v1::FetchProgress FetchProgressOf(const absl::Status& status) {
  const std::map<std::string, std::string> metadata = ErrorMetadata(status);
  const auto number = [&](const char* key) {
    const auto found = metadata.find(key);
    int64_t value = 0;
    return found != metadata.end() && absl::SimpleAtoi(found->second, &value) ? value : 0;
  };
  v1::FetchProgress progress;
  progress.set_bytes_done(number("bytes_done"));
  progress.set_bytes_total(number("bytes_total"));
  progress.set_files_done(number("files_done"));
  progress.set_files_total(number("files_total"));
  return progress;
}

}  // namespace tandem::client
