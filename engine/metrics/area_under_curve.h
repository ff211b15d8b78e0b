#ifndef TANDEM_ENGINE_METRICS_AREA_UNDER_CURVE_H_
#define TANDEM_ENGINE_METRICS_AREA_UNDER_CURVE_H_

#include <optional>
#include <vector>

namespace tandem {

// A sample's score. `positive` says whether it belongs to the class.
struct ScoredSample {
  float score = 0;
  bool positive = false;
};

// Returns the area under the receiver operating characteristic (Mann and Whitney 1947). It is the share of
// pairs of a positive and another sample in which the positive sample has the higher score. Equal scores
// count half. NaN is below every number. Returns nothing if all samples are of the same sort.
std::optional<double> AreaUnderCurve(std::vector<ScoredSample> samples);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_AREA_UNDER_CURVE_H_
