#include "engine/data/data_names.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/base/utf8.h"

namespace tandem {
namespace {

constexpr size_t kShownNames = 20;
constexpr size_t kShownBytes = 60;

}  // namespace

std::string ListNames(const std::vector<std::string>& names) {
  std::string list;
  for (size_t i = 0; i < std::min(kShownNames, names.size()); ++i) {
    const absl::string_view name = names[i];
    absl::StrAppend(&list, i == 0 ? "'" : ", '",
                    ToUtf8(absl::Utf8SafeCHexEscape(name.substr(0, kShownBytes))),
                    name.size() > kShownBytes ? "...'" : "'");
  }
  if (names.size() > kShownNames) absl::StrAppend(&list, " and ", names.size() - kShownNames, " more");
  return list;
}

std::string NameToUtf8(absl::string_view name) {
  if (IsUtf8(name)) return std::string(name);
  std::string text;
  for (const char character : name) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x80) {
      text.push_back(character);
    } else {
      text.push_back(static_cast<char>(0xC0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3F)));
    }
  }
  return text;
}

}  // namespace tandem
