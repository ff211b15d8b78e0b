#include "engine/data/dealing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem {

std::vector<int64_t> DealSamples(int64_t samples, absl::Span<const double> loads) {
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  std::vector<int64_t> counts;
  std::vector<double> remainders;
  int64_t dealt = 0;
  for (const double load : loads) {
    const double exact = std::isfinite(static_cast<double>(samples) * load)
                             ? static_cast<double>(samples) * load / total
                             : static_cast<double>(samples) * (load / total);
    // Rounding may move a whole quotient slightly above or below its value.
    const double whole = std::floor(exact + 1e-9);
    counts.push_back(static_cast<int64_t>(whole));
    // Rounded, so that rounding errors do not decide between equal remainders.
    remainders.push_back(load > 0 ? std::round((exact - whole) * 1e9) : -1);
    dealt += counts.back();
  }
  std::vector<size_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  // Fewer samples remain than there are loads, except for rounding.
  for (size_t i = 0; dealt < samples && !order.empty(); ++i, ++dealt) ++counts[order[i % order.size()]];
  return counts;
}

}  // namespace tandem
