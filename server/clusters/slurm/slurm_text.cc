#include "server/clusters/slurm/slurm_text.h"

#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr size_t kMostHosts = 65536;
// More digits do not fit into Slurm's own numbers.
constexpr size_t kMostDigits = 9;

// Reads a number without sign or spaces.
std::optional<int64_t> ParseDigits(absl::string_view text) {
  int64_t number = 0;
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  for (const char c : text) {
    if (!absl::ascii_isdigit(c)) return std::nullopt;
    number = 10 * number + (c - '0');
  }
  return number;
}

absl::Status MalformedHosts(absl::string_view list) {
  return absl::InvalidArgumentError(absl::StrCat("cannot read the host list \"", list, "\""));
}

// Splits at commas outside of brackets.
std::vector<absl::string_view> SplitHosts(absl::string_view list) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '[') ++depth;
    if (list[i] == ']') --depth;
    if (list[i] != ',' || depth != 0) continue;
    parts.push_back(list.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(list.substr(begin));
  return parts;
}

// Appends the numbers of a range such as "01-03" or "7".
absl::Status AppendRange(absl::string_view list, absl::string_view range, std::vector<std::string>& numbers) {
  const std::pair<absl::string_view, absl::string_view> ends = absl::StrSplit(range, absl::MaxSplits('-', 1));
  const std::optional<int64_t> first = ParseDigits(ends.first);
  const std::optional<int64_t> last = absl::StrContains(range, '-') ? ParseDigits(ends.second) : first;
  if (!first.has_value() || !last.has_value() || *last < *first ||
      *last - *first >= static_cast<int64_t>(kMostHosts)) {
    return MalformedHosts(list);
  }
  const int width = static_cast<int>(ends.first.size());
  for (int64_t i = *first; i <= *last; ++i) numbers.push_back(absl::StrFormat("%0*d", width, i));
  return absl::OkStatus();
}

// Returns the names of a part without commas outside of brackets, such as "rack[0-1]n[1-4]".
absl::StatusOr<std::vector<std::string>> ExpandHosts(absl::string_view list, absl::string_view part) {
  std::vector<std::string> names = {""};
  if (part.empty()) return MalformedHosts(list);
  while (!part.empty()) {
    const size_t open = part.find('[');
    const absl::string_view text = part.substr(0, open);
    if (absl::StrContains(text, ']')) return MalformedHosts(list);
    for (std::string& name : names) absl::StrAppend(&name, text);
    if (open == absl::string_view::npos) break;
    const size_t close = part.find(']', open);
    if (close == absl::string_view::npos) return MalformedHosts(list);
    std::vector<std::string> numbers;
    for (const absl::string_view range : absl::StrSplit(part.substr(open + 1, close - open - 1), ',')) {
      TANDEM_RETURN_IF_ERROR(AppendRange(list, range, numbers));
      if (numbers.size() > kMostHosts) return MalformedHosts(list);
    }
    if (names.size() * numbers.size() > kMostHosts) return MalformedHosts(list);
    std::vector<std::string> longer;
    for (const std::string& name : names) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    part = part.substr(close + 1);
  }
  return names;
}

}  // namespace

std::optional<absl::Duration> ParseSlurmDuration(absl::string_view text) {
  const std::string lower = absl::AsciiStrToLower(text);
  if (lower == "unlimited" || lower == "infinite") return absl::InfiniteDuration();
  const size_t dash = text.find('-');
  const bool has_days = dash != absl::string_view::npos;
  std::vector<int64_t> numbers;
  if (has_days) {
    const std::optional<int64_t> days = ParseDigits(text.substr(0, dash));
    if (!days.has_value()) return std::nullopt;
    numbers.push_back(*days);
    text.remove_prefix(dash + 1);
  }
  const size_t most = has_days ? 4 : 3;
  for (const absl::string_view part : absl::StrSplit(text, ':')) {
    const std::optional<int64_t> number = ParseDigits(part);
    if (!number.has_value() || numbers.size() == most) return std::nullopt;
    numbers.push_back(*number);
  }
  if (has_days) {
    numbers.resize(4);
    return absl::Hours(24 * numbers[0] + numbers[1]) + absl::Minutes(numbers[2]) + absl::Seconds(numbers[3]);
  }
  if (numbers.size() == 1) return absl::Minutes(numbers[0]);
  if (numbers.size() == 2) return absl::Minutes(numbers[0]) + absl::Seconds(numbers[1]);
  return absl::Hours(numbers[0]) + absl::Minutes(numbers[1]) + absl::Seconds(numbers[2]);
}

std::string FormatSlurmDuration(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) return "UNLIMITED";
  const int64_t seconds = absl::ToInt64Seconds(absl::Ceil(duration, absl::Seconds(1)));
  return absl::StrFormat("%d-%02d:%02d:%02d", seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60,
                         seconds % 60);
}

std::optional<absl::Time> ParseSlurmTime(absl::string_view text) {
  absl::Time time;
  // Without this check, absl::ParseTime would take "infinite-future".
  if (text.size() != 19 || !absl::ascii_isdigit(text[0])) return std::nullopt;
  if (!absl::ParseTime("%Y-%m-%dT%H:%M:%S", text, absl::UTCTimeZone(), &time, nullptr)) return std::nullopt;
  return time;
}

absl::StatusOr<std::vector<std::string>> ParseSlurmHosts(absl::string_view list) {
  std::vector<std::string> hosts;
  if (list.empty() || list == "(null)" || list == "None assigned") return hosts;
  for (const absl::string_view part : SplitHosts(list)) {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> names, ExpandHosts(list, part));
    hosts.insert(hosts.end(), names.begin(), names.end());
    if (hosts.size() > kMostHosts) return MalformedHosts(list);
  }
  return hosts;
}

int CountSlurmGpus(absl::string_view gres) {
  int64_t gpus = 0;
  // Text in parentheses, such as "(S:0,2)", has commas of its own.
  std::string outside;
  int depth = 0;
  for (const char c : gres) {
    if (c == '(') ++depth;
    if (depth == 0) outside += c;
    if (c == ')') --depth;
  }
  for (const absl::string_view resource : absl::StrSplit(outside, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(resource, ':');
    if (parts[0] != "gpu") continue;
    // "gpu" alone is one GPU; "gpu:a100" is one GPU of this type.
    gpus += ParseDigits(parts.back()).value_or(1);
  }
  return static_cast<int>(gpus);
}

std::string EscapeSlurmPattern(absl::string_view path) { return absl::StrReplaceAll(path, {{"%", "%%"}}); }

}  // namespace tandem
