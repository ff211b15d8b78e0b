#include "engine/metrics/area_under_curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace tandem {

std::optional<double> AreaUnderCurve(std::vector<ScoredSample> samples) {
  for (ScoredSample& sample : samples) {
    if (std::isnan(sample.score)) sample.score = -std::numeric_limits<float>::infinity();
  }
  std::sort(samples.begin(), samples.end(),
            [](const ScoredSample& a, const ScoredSample& b) { return a.score < b.score; });
  double positives = 0;
  double others = 0;  // The others below the current run of equal scores.
  double pairs = 0;
  for (size_t begin = 0; begin < samples.size();) {
    size_t end = begin;
    double equal_positives = 0;
    for (; end < samples.size() && samples[end].score == samples[begin].score; ++end) {
      equal_positives += samples[end].positive ? 1 : 0;
    }
    const double equal_others = static_cast<double>(end - begin) - equal_positives;
    pairs += equal_positives * (others + equal_others / 2);
    positives += equal_positives;
    others += equal_others;
    begin = end;
  }
  if (positives == 0 || others == 0) return std::nullopt;
  return pairs / (positives * others);
}

}  // namespace tandem
