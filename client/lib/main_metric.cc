#include "client/lib/main_metric.h"

namespace tandem::client {

std::string MainMetric(const v1::Evaluation& evaluation) {
  const auto& metrics = evaluation.metrics();
  if (metrics.contains("accuracy")) return "accuracy";
  // A protobuf map has another order in each message.
  std::string first;
  for (const auto& [name, value] : metrics) {
    if (first.empty() || name < first) first = name;
  }
  return first;
}

}  // namespace tandem::client
