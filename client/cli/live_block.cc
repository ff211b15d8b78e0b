#include "client/cli/live_block.h"

#include "absl/strings/str_cat.h"

namespace tandem::cli {

std::string LiveBlock::ToBegin() const {
  if (lines_ == 0) return "";
  // After a change of the terminal's size, the old lines may be wrapped at any place. Starts with an empty
  // screen.
  if (terminal_.Width() != width_ || lines_ >= terminal_.Height()) return "\x1b[H\x1b[2J";
  return absl::StrCat("\x1b[", lines_, "A\r");
}

void LiveBlock::Draw(const std::vector<std::string>& lines) {
  std::string text = ToBegin();
  for (const std::string& line : lines) absl::StrAppend(&text, line, "\x1b[K\n");
  text += "\x1b[J";
  terminal_.Out(text);
  lines_ = static_cast<int>(lines.size());
  width_ = terminal_.Width();
}

void LiveBlock::Erase() {
  if (lines_ > 0) terminal_.Out(ToBegin() + "\x1b[J");
  lines_ = 0;
}

}  // namespace tandem::cli
