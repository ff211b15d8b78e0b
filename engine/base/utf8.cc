#include "engine/base/utf8.h"

#include "absl/strings/str_format.h"

namespace tandem {

int32_t TakeCodePoint(absl::string_view* text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>((*text)[i]); };
  const uint8_t first = byte(0);
  const int more = first < 0x80 ? 0 : first >> 5 == 6 ? 1 : first >> 4 == 14 ? 2 : first >> 3 == 30 ? 3 : -1;
  int32_t point = more <= 0 ? first : first & (0x3F >> more);
  bool whole = more >= 0 && static_cast<size_t>(more) < text->size();
  for (int k = 1; whole && k <= more; ++k) {
    whole = byte(k) >> 6 == 2;
    point = point << 6 | (byte(k) & 0x3F);
  }
  // The least code point of each length.
  constexpr int32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  if (!whole || point < kLeast[more] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) {
    text->remove_prefix(1);
    return -1;
  }
  text->remove_prefix(more + 1);
  return point;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    // Most texts are ASCII.
    if (static_cast<uint8_t>(text.front()) < 0x80) {
      text.remove_prefix(1);
    } else if (TakeCodePoint(&text) < 0) {
      return false;
    }
  }
  return true;
}

std::string ToUtf8(absl::string_view text) {
  std::string result;
  while (!text.empty()) {
    const absl::string_view before = text;
    if (TakeCodePoint(&text) < 0) {
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<uint8_t>(before[0]));
    } else {
      result.append(before.data(), before.size() - text.size());
    }
  }
  return result;
}

}  // namespace tandem
