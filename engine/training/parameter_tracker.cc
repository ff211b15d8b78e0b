#include "engine/training/parameter_tracker.h"

#include <cmath>
#include <utility>

#include "absl/types/span.h"

namespace tandem {
namespace {

template <typename T>
void Fill(absl::Span<const T> before, absl::Span<const T> now, v1::ParameterStatistics* statistics) {
  double sum = 0, squares = 0, change = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    const double value = now[i];
    const double moved = value - before[i];
    sum += value;
    squares += value * value;
    change += moved * moved;
  }
  const auto count = static_cast<double>(now.size());
  const double mean = sum / count;
  double deviation = 0;
  for (const T value : now) deviation += (value - mean) * (value - mean);
  statistics->set_mean(mean);
  statistics->set_standard_deviation(std::sqrt(deviation / count));
  statistics->set_relative_change(change == 0 ? 0 : std::sqrt(change) / std::sqrt(squares));
}

}  // namespace

v1::ParameterReport ParameterTracker::Compare(std::vector<NamedTensor> parameters) {
  v1::ParameterReport report;
  for (size_t i = 0; i < parameters.size(); ++i) {
    v1::ParameterStatistics* const statistics = report.add_parameters();
    statistics->set_name(parameters[i].first);
    const Tensor& before = last_[i].second;
    const Tensor& now = parameters[i].second;
    if (now.dtype() == DType::kFloat64) {
      Fill<double>(before.data<double>(), now.data<double>(), statistics);
    } else {
      Fill<float>(before.data<float>(), now.data<float>(), statistics);
    }
  }
  last_ = std::move(parameters);
  return report;
}

}  // namespace tandem
