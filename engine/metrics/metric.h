#ifndef TANDEM_ENGINE_METRICS_METRIC_H_
#define TANDEM_ENGINE_METRICS_METRIC_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/graph/graph.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/target.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// Most classes of a job with precision, recall, F1 or AUC, and of one with a confusion matrix.
inline constexpr int64_t kMaxMeasuredClasses = 4096;
inline constexpr int64_t kMaxConfusedClasses = 256;
// Most probabilities that METRIC_AUC keeps.
inline constexpr int64_t kMaxScores = int64_t{1} << 27;

// Sets `metrics` and `top_k` where they are left out; the training has its loss.
void FillMetricDefaults(v1::Training* training);

// That the metrics are known, given once, and go with the loss. INVALID_ARGUMENT with the fields at fault,
// relative to the Training ("metrics[1]"). Defaults are filled in, here and below.
absl::Status CheckMetrics(const v1::Training& training);

// That the metrics go with the targets of validation and with their number, and the network's outputs for one
// sample. INVALID_ARGUMENT as above.
absl::Status CheckMetricTargets(const v1::Training& training, const Target& target, const Shape& output,
                                int64_t validation_samples);

// The name by which it is reported: "accuracy", "top_5_accuracy".
std::string MetricName(v1::Metric metric, const v1::Training& training);

// Whether it is measured in training too, by a meter on the device; otherwise in validation alone, by an
// Evaluator.
bool IsMetered(v1::Metric metric);

// Whether more of it is better.
bool LargerIsBetter(v1::Metric metric);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_METRIC_H_
