#include "client/cli/process_options.h"

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/base/env.h"

namespace tandem::cli {
namespace {

// Returns the options with a value, as "--name value" or "--name=value". The last occurrence counts.
std::map<std::string, std::string> ParseCommandLine(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, '\0');
  std::map<std::string, std::string> options;
  for (size_t i = 0; i < words.size(); ++i) {
    absl::string_view word = words[i];
    if (!absl::ConsumePrefix(&word, "--")) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (absl::StrContains(word, "=")) {
      options[parts.first] = parts.second;
    } else if (i + 1 < words.size()) {
      options[parts.first] = words[i + 1];
    }
  }
  return options;
}

// Returns the scalar options of the options file, which is a mapping in YAML: "tls-cert: server.pem".
std::map<std::string, std::string> ParseConfig(const std::string& text) {
  std::map<std::string, std::string> options;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    std::string name(absl::StripAsciiWhitespace(line.substr(0, colon)));
    std::replace(name.begin(), name.end(), '_', '-');
    std::string value(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    if (const size_t comment = value.find(" #"); comment != std::string::npos) {
      value = std::string(absl::StripAsciiWhitespace(value.substr(0, comment)));
    }
    if (value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0]) {
      value = value.substr(1, value.size() - 2);
    }
    options[name] = value;
  }
  return options;
}

}  // namespace

ProcessOptions::ProcessOptions(int64_t pid, const std::string& root) {
  const std::string process = absl::StrCat(root, "/proc/", pid);
  values_ = ParseCommandLine(ContentOrEmpty(process + "/cmdline"));
  std::error_code error;
  folder_ = std::filesystem::read_symlink(process + "/cwd", error);
  if (const std::string config = Path("config"); !config.empty()) {
    values_.merge(ParseConfig(ContentOrEmpty(config)));
  }
}

std::string ProcessOptions::Value(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? "" : found->second;
}

std::string ProcessOptions::Path(const std::string& name) const {
  const std::string path = Value(name);
  return path.empty() ? "" : (folder_ / path).string();
}

}  // namespace tandem::cli
