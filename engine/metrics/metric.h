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

// The most classes of a job with precision, recall, F1 or AUC, and of a job with a confusion matrix.
inline constexpr int64_t kMaxMeasuredClasses = 4096;
inline constexpr int64_t kMaxConfusedClasses = 256;
// The most probabilities that METRIC_AUC keeps.
inline constexpr int64_t kMaxScores = int64_t{1} << 27;

// Sets missing `metrics` and `top_k` to their defaults. The training has its loss.
void FillMetricDefaults(v1::Training* training);

// Checks that the metrics are known, not repeated, and fit the loss. INVALID_ARGUMENT with the wrong fields,
// relative to the Training ("metrics[1]"). Defaults are filled in, here and below.
absl::Status CheckMetrics(const v1::Training& training);

// Checks that the metrics fit the validation's targets, their number, and the network's outputs for a single
// sample. INVALID_ARGUMENT as CheckMetrics.
absl::Status CheckMetricTargets(const v1::Training& training, const Target& target, const Shape& output,
                                int64_t validation_samples);

// Returns the reported name: "accuracy", "top_5_accuracy".
std::string MetricName(v1::Metric metric, const v1::Training& training);

// Returns whether a meter on the device measures it, in training and in validation. Otherwise an Evaluator
// measures it in validation alone.
bool IsMetered(v1::Metric metric);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_METRIC_H_
