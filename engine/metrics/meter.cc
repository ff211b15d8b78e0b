#include "engine/metrics/meter.h"

#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/value_loss.h"
#include "engine/losses/loss.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

// Positions in a meter.
constexpr int kLoss = 0;
constexpr int kLossWeight = 1;
constexpr int kCounted = 2;
constexpr int kFirstMetric = 3;

// A scalar of a graph, and its factor in a sum.
struct Term {
  ValueId value = kNoValue;
  double weight = 1;
};

absl::StatusOr<Term> AddMetric(v1::Metric metric, const v1::Training& training, const MeteredValues& values,
                               int64_t rows, Graph& graph) {
  const std::optional<int64_t> ignored = IgnoreIndexOf(training.loss());
  const Shape& output = graph.value(values.output).shape;
  const auto samples = static_cast<double>(output[0]);
  Term term;
  std::shared_ptr<const Op> op;
  switch (metric) {
    case v1::METRIC_ACCURACY:
      if (training.loss().has_binary_cross_entropy_with_logits()) {
        op = std::make_shared<CountSidesOp>();
        term.weight = samples / static_cast<double>(output.elements());
      } else {
        op = std::make_shared<CountCorrectOp>(1, ignored);
      }
      break;
    case v1::METRIC_TOP_K:
      op = std::make_shared<CountCorrectOp>(training.top_k(), ignored);
      break;
    case v1::METRIC_MAE:
    case v1::METRIC_RMSE: {
      ValueLossSettings settings;
      if (metric == v1::METRIC_MAE) settings.mode = ValueLossSettings::Mode::kAbsolute;
      term.weight = static_cast<double>(rows);
      const bool is_loss = metric == v1::METRIC_MAE ? training.loss().has_l1() : training.loss().has_mse();
      if (is_loss) {
        term.value = values.loss;
        return term;
      }
      op = std::make_shared<ValueLossOp>(settings);
      break;
    }
    case v1::METRIC_PERPLEXITY:
      // ReadMeter derives it from the loss.
      term.value = graph.AddConstant(0, DType::kFloat64, Shape());
      return term;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(MetricName(metric, training), " is not measured by a meter"));
  }
  TANDEM_ASSIGN_OR_RETURN(term.value, graph.Add(std::move(op), {values.output, values.target}));
  return term;
}

std::vector<v1::Metric> MeteredMetrics(const v1::Training& training) {
  std::vector<v1::Metric> metrics;
  for (const int metric : training.metrics()) {
    if (IsMetered(static_cast<v1::Metric>(metric))) metrics.push_back(static_cast<v1::Metric>(metric));
  }
  return metrics;
}

}  // namespace

Shape MeterShape(const v1::Training& training) {
  return Shape({kFirstMetric + static_cast<int64_t>(MeteredMetrics(training).size())});
}

absl::Status AddToMeter(const v1::Training& training, const MeteredValues& values, ValueId meter,
                        Graph& graph) {
  const Value& target = graph.value(values.target);
  const Shape& output = graph.value(values.output).shape;
  // Tokens are int32 [batch, length].
  const bool tokens = target.dtype == DType::kInt32 && target.shape.rank() == 2;
  const int64_t rows = tokens ? target.shape.elements() : output[0];
  const auto all = static_cast<double>(rows);
  const ValueId one = graph.AddConstant(1, DType::kFloat64, Shape());
  std::vector<Term> terms(kFirstMetric);
  const bool weighted = values.loss_sum != kNoValue;
  terms[kLoss] = weighted ? Term{values.loss_sum, 1} : Term{values.loss, all};
  terms[kLossWeight] = weighted ? Term{values.loss_weight, 1} : Term{one, all};
  terms[kCounted] = {one, all};
  const std::optional<int64_t> ignored = IgnoreIndexOf(training.loss());
  if (ignored.has_value() && target.dtype == DType::kInt32) {
    terms[kCounted].weight = 1;
    TANDEM_ASSIGN_OR_RETURN(terms[kCounted].value,
                            graph.Add(std::make_shared<CountLabelsOp>(*ignored), {values.target}));
  }
  for (const v1::Metric metric : MeteredMetrics(training)) {
    TANDEM_ASSIGN_OR_RETURN(terms.emplace_back(), AddMetric(metric, training, values, rows, graph));
  }
  std::vector<ValueId> inputs = {meter};
  std::vector<double> weights;
  for (const Term& term : terms) {
    inputs.push_back(term.value);
    weights.push_back(term.weight);
  }
  return graph.AddNode(std::make_shared<AccumulateOp>(std::move(weights)), std::move(inputs)).status();
}

bool HasLoss(absl::Span<const double> sums) { return sums.size() > kLossWeight && sums[kLossWeight] != 0; }

void ReadMeter(const v1::Training& training, absl::Span<const double> sums, v1::Evaluation* evaluation) {
  const std::vector<v1::Metric> metrics = MeteredMetrics(training);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto mean = [&sums](size_t place, size_t count) {
    return count < sums.size() && place < sums.size() && sums[count] != 0 ? sums[place] / sums[count] : kNone;
  };
  evaluation->set_loss(mean(kLoss, kLossWeight));
  for (size_t i = 0; i < metrics.size(); ++i) {
    double value = mean(kFirstMetric + i, kCounted);
    if (metrics[i] == v1::METRIC_RMSE) value = std::sqrt(value);
    if (metrics[i] == v1::METRIC_PERPLEXITY) value = std::exp(evaluation->loss());
    const bool counts = kCounted < sums.size() && sums[kCounted] != 0;
    const std::string name = MetricName(metrics[i], training);
    if (counts) {
      (*evaluation->mutable_metrics())[name] = value;
    } else {
      evaluation->mutable_metrics()->erase(name);
    }
  }
}

void RestoreTargetScale(const v1::Training& training, double deviation, v1::Evaluation* evaluation) {
  if (deviation == 0) return;
  const v1::Loss& loss = training.loss();
  if (loss.has_mse() || loss.has_huber()) evaluation->set_loss(evaluation->loss() * deviation * deviation);
  if (loss.has_l1() || loss.has_smooth_l1()) evaluation->set_loss(evaluation->loss() * deviation);
  for (const v1::Metric metric : {v1::METRIC_MAE, v1::METRIC_RMSE}) {
    const auto found = evaluation->mutable_metrics()->find(MetricName(metric, training));
    if (found != evaluation->mutable_metrics()->end()) found->second *= deviation;
  }
}

}  // namespace tandem
