#include "server/workers/worker_log.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "server/workers/untrusted_file.h"

namespace tandem {

std::string LastLogLine(const std::string& path) {
  constexpr size_t kTail = 65536;
  return LastLineOf(ReadUntrustedTail(path, kTail).value_or(""));
}

std::string LastLineOf(absl::string_view text) {
  constexpr size_t kMaxLine = 300;
  // A crash's stack is long and comes last. The line before it tells more.
  if (const size_t crash = text.rfind("*** SIG");
      crash != text.npos && (crash == 0 || text[crash - 1] == '\n')) {
    text = text.substr(0, crash);
  }
  text = absl::StripTrailingAsciiWhitespace(text);
  text.remove_prefix(text.find_last_of('\n') + 1);
  std::string line(text.substr(0, kMaxLine));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return !absl::ascii_isprint(c); }, '?');
  return line;
}

}  // namespace tandem
