#include "proto/data_folder/shards.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShownBytes = 200;
// The most digits of a range's bound. All such numbers fit int64_t.
constexpr size_t kMostDigits = 18;

absl::Status Wrong(absl::string_view pattern, absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat("is '", absl::CHexEscape(pattern.substr(0, kShownBytes)),
                                                 pattern.size() > kShownBytes ? "...'" : "'", fault));
}

absl::Status TooMany(absl::string_view pattern) {
  return Wrong(pattern, absl::StrCat(", which names more than ", kMaxShards,
                                     " shards; make larger shards, or give a smaller range"));
}

// Returns the bytes of all texts together.
size_t BytesOf(const std::vector<std::string>& texts) {
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

// Appends the texts that a pair of braces stands for. `inner` is the text between the braces.
absl::Status AddAlternatives(absl::string_view pattern, absl::string_view inner,
                             std::vector<std::string>& texts) {
  const auto shown = [&] { return absl::StrCat("'{", absl::CHexEscape(inner.substr(0, kShownBytes)), "}'"); };
  if (absl::StrContains(inner, ',')) {
    for (const absl::string_view text : absl::StrSplit(inner, ',')) texts.emplace_back(text);
    return texts.size() > kMaxShards ? TooMany(pattern) : absl::OkStatus();
  }
  const std::pair<absl::string_view, absl::string_view> bounds =
      absl::StrSplit(inner, absl::MaxSplits("..", 1));
  const auto is_number = [](absl::string_view text) {
    return !text.empty() && text.size() <= kMostDigits &&
           std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
  };
  int64_t first = 0, last = 0;
  if (!is_number(bounds.first) || !is_number(bounds.second) || !absl::SimpleAtoi(bounds.first, &first) ||
      !absl::SimpleAtoi(bounds.second, &last)) {
    return Wrong(pattern, absl::StrCat(", but ", shown(),
                                       " is neither a range of numbers, such as {0000..0099}, nor "
                                       "alternatives, such as {red,blue}"));
  }
  if (first > last) {
    return Wrong(pattern,
                 absl::StrCat(", but the range ", shown(), " has its larger number first; swap the numbers"));
  }
  if (last - first >= static_cast<int64_t>(kMaxShards)) return TooMany(pattern);
  const auto is_padded = [](absl::string_view text) { return text.size() > 1 && text.front() == '0'; };
  const size_t width = is_padded(bounds.first) || is_padded(bounds.second)
                           ? std::max(bounds.first.size(), bounds.second.size())
                           : 0;
  for (int64_t number = first; number <= last; ++number) {
    std::string text = absl::StrCat(number);
    if (text.size() < width) text.insert(0, width - text.size(), '0');
    texts.push_back(std::move(text));
  }
  return absl::OkStatus();
}

// Returns the part of a data set that the last such word of a path means: kValidation for
// "set/imagenet-val-0.tar".
DataPart PartInPath(absl::string_view path) {
  DataPart part = DataPart::kNone;
  size_t begin = 0;
  for (size_t i = 0; i <= path.size(); ++i) {
    if (i < path.size() && absl::ascii_isalpha(path[i])) continue;
    if (const DataPart one = PartOf(path.substr(begin, i - begin)); one != DataPart::kNone) part = one;
    begin = i + 1;
  }
  return part;
}

// Checks that the shards of a folder are not of several parts. Validation samples must not be trained on.
absl::Status CheckOnePart(const std::string& folder, const std::vector<std::string>& shards) {
  absl::string_view first;
  DataPart first_part = DataPart::kNone;
  for (const std::string& shard : shards) {
    const absl::string_view name = absl::StripPrefix(absl::string_view(shard).substr(folder.size()), "/");
    const DataPart part = PartInPath(name);
    if (part == DataPart::kNone || part == first_part) continue;
    if (first_part != DataPart::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder, " has shards of several parts of a data set, such as ", first, " and ", name,
                       "; give each part by a pattern, such as train-{0000..0099}.tar"));
    }
    first = name;
    first_part = part;
  }
  return absl::OkStatus();
}

}  // namespace

bool IsShardPattern(absl::string_view path) { return path.find_first_of("{}") != absl::string_view::npos; }

bool IsShardName(absl::string_view name) { return absl::EndsWithIgnoreCase(name, ".tar"); }

absl::string_view FolderOfPattern(absl::string_view pattern) {
  const size_t slash = pattern.substr(0, pattern.find('{')).rfind('/');
  return slash == absl::string_view::npos ? "" : pattern.substr(0, slash + 1);
}

absl::StatusOr<std::vector<std::string>> ExpandShardPattern(absl::string_view pattern) {
  if (pattern.size() > kMaxShardPatternBytes) {
    return Wrong(pattern, absl::StrCat(", which has ", pattern.size(), " bytes; a pattern has at most ",
                                       kMaxShardPatternBytes));
  }
  const auto too_long = [&] {
    return Wrong(pattern, absl::StrCat(", whose shards have paths of more than ", kMaxShardPathsBytes >> 20,
                                       " MiB together; give shorter paths, or a smaller range"));
  };
  std::vector<std::string> paths = {""};
  for (absl::string_view rest = pattern; !rest.empty();) {
    const size_t open = rest.find_first_of("{}");
    if (BytesOf(paths) + paths.size() * std::min(open, rest.size()) > kMaxShardPathsBytes) return too_long();
    for (std::string& path : paths) absl::StrAppend(&path, rest.substr(0, open));
    if (open == absl::string_view::npos) break;
    if (rest[open] == '}') return Wrong(pattern, ", but has a '}' without a '{' before it; add the '{'");
    const size_t close = rest.find_first_of("{}", open + 1);
    if (close == absl::string_view::npos) {
      return Wrong(pattern, ", but has a '{' without a '}' after it; add the '}'");
    }
    if (rest[close] == '{') {
      return Wrong(pattern, ", but has braces within braces; write each pair of braces after the other");
    }
    std::vector<std::string> texts;
    if (absl::Status status = AddAlternatives(pattern, rest.substr(open + 1, close - open - 1), texts);
        !status.ok()) {
      return status;
    }
    if (paths.size() * texts.size() > kMaxShards) return TooMany(pattern);
    // Before the paths are made, because they take this memory.
    if (BytesOf(paths) * texts.size() + BytesOf(texts) * paths.size() > kMaxShardPathsBytes) {
      return too_long();
    }
    std::vector<std::string> longer;
    longer.reserve(paths.size() * texts.size());
    for (const std::string& path : paths) {
      for (const std::string& text : texts) longer.push_back(path + text);
    }
    paths = std::move(longer);
    rest.remove_prefix(close + 1);
  }
  std::sort(paths.begin(), paths.end());
  const auto twice = std::adjacent_find(paths.begin(), paths.end());
  if (twice != paths.end()) {
    return Wrong(pattern, absl::StrCat(", which names ", absl::CHexEscape(twice->substr(0, kShownBytes)),
                                       " twice; name each shard once"));
  }
  return paths;
}

absl::StatusOr<std::vector<std::string>> ListShards(const std::string& path) {
  std::error_code ignored;
  // The name of a file or folder may have braces.
  if (!fs::is_directory(path, ignored)) {
    if (!IsShardPattern(path) || fs::is_regular_file(path, ignored)) return std::vector<std::string>{path};
    return ExpandShardPattern(path);
  }
  std::vector<std::string> shards;
  const absl::Status status = WalkDataFolder(path, [&](const fs::path& file, bool is_folder) {
    if (!is_folder && IsShardName(file.string())) shards.push_back(file.string());
  });
  if (!status.ok()) return status;
  if (shards.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " has no shard: no file ending in .tar; put shards there, or give another folder"));
  }
  if (shards.size() > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", shards.size(), " shards; at most ", kMaxShards, " are read"));
  }
  std::sort(shards.begin(), shards.end());
  if (absl::Status status = CheckOnePart(path, shards); !status.ok()) return status;
  return shards;
}

}  // namespace tandem
