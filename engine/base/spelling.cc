#include "engine/base/spelling.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tandem {
namespace {

std::string Normalized(absl::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != '_' && c != '-') result += absl::ascii_tolower(c);
  }
  return result;
}

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Rows i - 2, i - 1 and i of the table of distances between the first i letters of a and the first j of b.
  std::vector<int> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
    std::swap(two_above, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string NearestName(absl::string_view typed, const std::vector<std::string>& names) {
  const std::string wanted = Normalized(typed);
  // Long input is not a misspelt name, and the table is quadratic.
  if (wanted.empty() || wanted.size() > 64) return "";
  std::string best;
  int best_distance = 1000;
  for (const std::string& name : names) {
    const std::string candidate = Normalized(name);
    const int longest = static_cast<int>(std::max(wanted.size(), candidate.size()));
    // Of short names most others are two letters away.
    const int allowed = std::max(1, longest / 3);
    const int distance = EditDistance(wanted, candidate);
    if (distance <= allowed && distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  if (!best.empty() || wanted.size() < 3) return best;
  for (const std::string& name : names) {
    const std::string candidate = Normalized(name);
    const bool near = candidate.find(wanted) != std::string::npos ||
                      (candidate.size() >= 3 && wanted.find(candidate) != std::string::npos);
    if (near && (best.empty() || name.size() < best.size())) best = name;
  }
  return best;
}

std::string SpellingHint(absl::string_view typed, const std::vector<std::string>& names) {
  if (const std::string nearest = NearestName(typed, names); !nearest.empty()) {
    return absl::StrCat("did you mean `", nearest, "`?");
  }
  constexpr size_t kMostNames = 24;
  if (names.size() <= kMostNames) return absl::StrCat("known here: ", absl::StrJoin(names, ", "));
  return absl::StrCat("known here: ", absl::StrJoin(names.begin(), names.begin() + kMostNames, ", "),
                      ", ...");
}

}  // namespace tandem
