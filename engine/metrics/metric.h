#ifndef TANDEM_ENGINE_METRICS_METRIC_H_
#define TANDEM_ENGINE_METRICS_METRIC_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/graph/graph.h"
#include "tandem/v1/training.pb.h"

namespace tandem {

// INVALID_ARGUMENT where it is no metric.
absl::Status CheckMetric(v1::Metric metric);

// The name by which it is reported: "accuracy".
absl::string_view MetricName(v1::Metric metric);

// Appends the metric of `output` (a batch) against `labels`, int32 [batch], and returns its sum over the
// batch, a scalar: the mean over samples is that sum's total divided by their number.
absl::StatusOr<ValueId> AddMetric(v1::Metric metric, ValueId output, ValueId labels, Graph& graph);

}  // namespace tandem

#endif  // TANDEM_ENGINE_METRICS_METRIC_H_
