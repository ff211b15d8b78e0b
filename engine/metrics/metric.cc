#include "engine/metrics/metric.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/classification.h"

namespace tandem {

absl::Status CheckMetric(v1::Metric metric) {
  if (metric == v1::METRIC_ACCURACY) return absl::OkStatus();
  return FieldError("", absl::StrCat("is ", static_cast<int>(metric), ", which is no metric; give accuracy"));
}

absl::string_view MetricName(v1::Metric metric) {
  return metric == v1::METRIC_ACCURACY ? "accuracy" : "unknown";
}

absl::StatusOr<ValueId> AddMetric(v1::Metric metric, ValueId output, ValueId labels, Graph& graph) {
  TANDEM_RETURN_IF_ERROR(CheckMetric(metric));
  return graph.Add(std::make_shared<CountCorrectOp>(), {output, labels});
}

}  // namespace tandem
