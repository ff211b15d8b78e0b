#include "server/jobs/uploaded_weights.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tandem {

std::optional<UploadedFile> UploadedWeights(const v1::InitialWeights& weights) {
  constexpr size_t kIdDigits = 16;
  absl::string_view rest = weights.file();
  if (!absl::ConsumePrefix(&rest, "uploads/") || rest.size() <= kIdDigits || rest[kIdDigits] != '/') {
    return std::nullopt;
  }
  const absl::string_view id = rest.substr(0, kIdDigits);
  const auto is_digit = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
  if (!std::all_of(id.begin(), id.end(), is_digit)) return std::nullopt;
  return UploadedFile{std::string(id), std::string(rest.substr(kIdDigits + 1))};
}

}  // namespace tandem
