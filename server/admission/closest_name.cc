#include "server/admission/closest_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace tandem {
namespace {

std::string Normal(absl::string_view name) {
  std::string normal = absl::AsciiStrToLower(name);
  std::replace(normal.begin(), normal.end(), '_', '-');
  return normal;
}

size_t Distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] =
          std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string ClosestName(absl::string_view name, const std::vector<std::string>& candidates) {
  // A long name is no typing mistake, and the comparison takes quadratic time.
  if (name.size() > 100) return "";
  const std::string wanted = Normal(name);
  std::string closest;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(wanted, Normal(candidate));
    if (distance < least) {
      least = distance;
      closest = candidate;
    }
  }
  return closest;
}

}  // namespace tandem
