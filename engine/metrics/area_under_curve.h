#ifndef TANDEM_ENGINE_METRICS_AREA_UNDER_CURVE_H_
#define TANDEM_ENGINE_METRICS_AREA_UNDER_CURVE_H_

#include <optional>
#include <vector>

namespace tandem {

// A sample's score, and whether it is of the class.
struct ScoredSample {
  float score = 0;
  bool positive = false;
};

// The area under the receiver operating characteristic: the share of the pairs of a positive and another
// sample in which the positive's score is higher, equal ones counting half (Mann and Whitney 1947). A NaN is
// below every number. None where all samples are of one sort.
std::optional<double> AreaUnderCurve(std::vector<ScoredSample> samples);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_AREA_UNDER_CURVE_H_
