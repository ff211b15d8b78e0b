#include "server/scheduler/visible_gpus.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tandem {
namespace {

constexpr int kNone = -1;

// Returns the number at the start of `entry`: CUDA reads "1st" as 1.
int Ordinal(absl::string_view entry, int gpus) {
  absl::ConsumePrefix(&entry, "+");
  size_t digits = 0;
  while (digits < entry.size() && absl::ascii_isdigit(static_cast<unsigned char>(entry[digits]))) ++digits;
  int ordinal = kNone;
  if (!absl::SimpleAtoi(entry.substr(0, digits), &ordinal) || ordinal >= gpus) return kNone;
  return ordinal;
}

int WithUuid(absl::string_view entry, const std::vector<std::string>& uuids) {
  int found = kNone;
  for (size_t i = 0; i < uuids.size(); ++i) {
    if (!absl::StartsWith(uuids[i], entry)) continue;
    if (found != kNone) return kNone;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace

std::vector<int> VisibleGpus(absl::string_view text, const std::vector<std::string>& uuids) {
  std::vector<int> visible;
  // The first entry decides the form of all entries.
  const bool by_uuid = absl::StartsWith(absl::StripAsciiWhitespace(text), "GPU-");
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    entry = absl::StripAsciiWhitespace(entry);
    if (by_uuid && !absl::StartsWith(entry, "GPU-")) break;
    const int gpu = by_uuid ? WithUuid(entry, uuids) : Ordinal(entry, static_cast<int>(uuids.size()));
    if (gpu == kNone) break;
    if (std::find(visible.begin(), visible.end(), gpu) != visible.end()) return {};
    visible.push_back(gpu);
  }
  return visible;
}

}  // namespace tandem
