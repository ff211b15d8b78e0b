#include "engine/metrics/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "engine/metrics/area_under_curve.h"
#include "engine/metrics/metric.h"

namespace tandem {
namespace {

// Returns the logarithm of the odds of each class, log(p / (1 - p)). It has the order of p. It is infinite
// only if an output is infinite. There are at least two classes.
std::vector<double> LogOdds(absl::Span<const double> outputs) {
  const size_t best = std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
  const double largest = outputs[best];
  double second = -std::numeric_limits<double>::infinity();
  for (size_t c = 0; c < outputs.size(); ++c) {
    if (c != best) second = std::max(second, outputs[c]);
  }
  // Sums over the other classes than the best, in proportion to the second and to the best.
  double sum_by_second = 0;
  double sum_by_best = 0;
  for (size_t c = 0; c < outputs.size(); ++c) {
    if (c == best) continue;
    sum_by_second += outputs[c] == second ? 1 : std::exp(outputs[c] - second);
    sum_by_best += std::exp(outputs[c] - largest);
  }
  std::vector<double> odds;
  odds.reserve(outputs.size());
  for (size_t c = 0; c < outputs.size(); ++c) {
    // The best class is in the sum as 1, so the difference does not cancel.
    odds.push_back(c == best
                       ? largest - second - std::log(sum_by_second)
                       : outputs[c] - largest - std::log(1 + (sum_by_best - std::exp(outputs[c] - largest))));
  }
  return odds;
}

// Returns the largest output, the first of equal outputs. NaN is larger than every number.
int64_t LargestOf(absl::Span<const double> outputs) {
  size_t best = 0;
  for (size_t c = 1; c < outputs.size(); ++c) {
    if (outputs[c] > outputs[best] || (std::isnan(outputs[c]) && !std::isnan(outputs[best]))) best = c;
  }
  return static_cast<int64_t>(best);
}

// Positions in the sums of values.
constexpr size_t kValueCount = 0;
constexpr size_t kValueMean = 1;
constexpr size_t kValueSquares = 2;
constexpr size_t kValueErrors = 3;
constexpr size_t kValueSums = 4;

// Adds the sums of other values (Chan et al. 1979).
void AddValueSums(const std::vector<double>& more, std::vector<double>* sums) {
  const double count = (*sums)[kValueCount] + more[kValueCount];
  if (count == 0) return;
  const double distance = more[kValueMean] - (*sums)[kValueMean];
  (*sums)[kValueSquares] +=
      more[kValueSquares] + distance * distance * (*sums)[kValueCount] * more[kValueCount] / count;
  (*sums)[kValueMean] += distance * more[kValueCount] / count;
  (*sums)[kValueErrors] += more[kValueErrors];
  (*sums)[kValueCount] = count;
}

double Quotient(double a, double b) { return b == 0 ? 0 : a / b; }

// Sets the metric to the mean of `numbers`, unless there are none.
void SetMean(const std::string& name, const std::vector<double>& numbers, v1::Evaluation* evaluation) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  if (numbers.empty()) {
    evaluation->mutable_metrics()->erase(name);
  } else {
    (*evaluation->mutable_metrics())[name] = sum / static_cast<double>(numbers.size());
  }
}

}  // namespace

bool Evaluator::IsNeeded(const v1::Training& training) {
  return std::any_of(training.metrics().begin(), training.metrics().end(),
                     [](int metric) { return !IsMetered(static_cast<v1::Metric>(metric)); });
}

int64_t Evaluator::HostBytes(const v1::Training& training, const Target& target, int64_t samples) {
  if (!IsNeeded(training)) return 0;
  const Evaluator evaluator(training, target);
  int64_t bytes = static_cast<int64_t>(evaluator.matrix_.size() * sizeof(int64_t));
  if (evaluator.asked(v1::METRIC_AUC)) {
    // The replica's own scores, and the scores of all replicas.
    const int64_t of_sample = static_cast<int64_t>(sizeof(float)) * evaluator.score_columns_ +
                              static_cast<int64_t>(sizeof(int32_t));
    bytes += 2 * samples * of_sample;
  }
  return bytes;
}

Evaluator::Evaluator(const v1::Training& training, const Target& target)
    : asked_(v1::Metric_ARRAYSIZE, false),
      sides_(training.loss().has_binary_cross_entropy_with_logits()),
      labelled_(target.kind == TargetKind::kClass || target.kind == TargetKind::kTokens),
      classes_(sides_ ? 2 : target.classes) {
  *training_.mutable_metrics() = training.metrics();
  training_.set_top_k(training.top_k());
  for (const int metric : training.metrics()) asked_[metric] = true;
  const v1::Loss& loss = training.loss();
  if (loss.softmax_cross_entropy().has_ignore_index()) {
    ignore_index_ = loss.softmax_cross_entropy().ignore_index();
  } else if (loss.negative_log_likelihood().has_ignore_index()) {
    ignore_index_ = loss.negative_log_likelihood().ignore_index();
  }
  right_.assign(classes_, 0);
  given_.assign(classes_, 0);
  own_.assign(classes_, 0);
  if (asked(v1::METRIC_R2)) values_.assign(kValueSums, 0);
  if (asked(v1::METRIC_CONFUSION_MATRIX)) matrix_.assign(classes_ * classes_, 0);
  if (sides_) {
    score_columns_ = labelled_ ? 1 : target.shape.elements();
  } else {
    score_columns_ = classes_ == 2 ? 1 : classes_;
  }
}

void Evaluator::Add(const Tensor& outputs, const void* targets) {
  const Tensor numbers = outputs.CastTo(DType::kFloat64);
  const int64_t samples = outputs.shape()[0];
  if (!values_.empty()) {
    AddValues(numbers.data<double>(), static_cast<const float*>(targets));
  } else if (sides_) {
    AddSides(numbers.data<double>(), samples, labelled_, targets);
  } else {
    AddClasses(numbers.data<double>(), absl::MakeSpan(static_cast<const int32_t*>(targets), samples));
  }
}

void Evaluator::AddValues(absl::Span<const double> outputs, const float* targets) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double target = targets[i], error = outputs[i] - target;
    AddValueSums({1, target, 0, error * error}, &values_);
  }
}

void Evaluator::AddClasses(absl::Span<const double> outputs, absl::Span<const int32_t> labels) {
  for (size_t n = 0; n < labels.size(); ++n) {
    if (ignore_index_ == labels[n]) continue;
    const absl::Span<const double> row = outputs.subspan(n * classes_, classes_);
    Count(labels[n], LargestOf(row));
    if (!asked(v1::METRIC_AUC)) continue;
    score_classes_.push_back(labels[n]);
    if (classes_ == 2) {
      scores_.push_back(static_cast<float>(row[1] - row[0]));
    } else {
      for (const double score : LogOdds(row)) scores_.push_back(static_cast<float>(score));
    }
  }
}

void Evaluator::AddSides(absl::Span<const double> outputs, int64_t samples, bool classes,
                         const void* targets) {
  for (int64_t i = 0; i < samples * score_columns_; ++i) {
    const bool positive =
        classes ? static_cast<const int32_t*>(targets)[i] > 0 : static_cast<const float*>(targets)[i] > 0.5f;
    if (score_columns_ == 1) Count(positive ? 1 : 0, outputs[i] > 0 ? 1 : 0);
    if (!asked(v1::METRIC_AUC)) continue;
    scores_.push_back(static_cast<float>(outputs[i]));
    score_sides_.push_back(positive);
  }
}

void Evaluator::Count(int64_t target, int64_t given) {
  ++own_[target];
  ++given_[given];
  if (target == given) ++right_[target];
  if (!matrix_.empty()) ++matrix_[target * classes_ + given];
}

void Evaluator::Merge(const Evaluator& other) {
  const auto add = [](std::vector<int64_t>& sums, const std::vector<int64_t>& more) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
  };
  add(right_, other.right_);
  add(given_, other.given_);
  add(own_, other.own_);
  add(matrix_, other.matrix_);
  if (!values_.empty() && !other.values_.empty()) AddValueSums(other.values_, &values_);
  scores_.insert(scores_.end(), other.scores_.begin(), other.scores_.end());
  score_classes_.insert(score_classes_.end(), other.score_classes_.begin(), other.score_classes_.end());
  score_sides_.insert(score_sides_.end(), other.score_sides_.begin(), other.score_sides_.end());
}

std::vector<double> Evaluator::ToNumbers() const {
  std::vector<double> numbers;
  const auto add = [&numbers](const auto& values) {
    numbers.push_back(static_cast<double>(values.size()));
    numbers.insert(numbers.end(), values.begin(), values.end());
  };
  for (const auto* counts : {&right_, &given_, &own_, &matrix_}) add(*counts);
  add(scores_);
  add(score_classes_);
  add(score_sides_);
  add(values_);
  return numbers;
}

void Evaluator::FromNumbers(absl::Span<const double> numbers) {
  const auto take = [&numbers](auto& values) {
    const size_t count = numbers.empty() ? 0 : std::min<size_t>(numbers[0], numbers.size() - 1);
    if (!numbers.empty()) numbers.remove_prefix(1);
    values.assign(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count));
    numbers.remove_prefix(count);
  };
  for (auto* counts : {&right_, &given_, &own_, &matrix_}) take(*counts);
  take(scores_);
  take(score_classes_);
  take(score_sides_);
  take(values_);
}

std::optional<double> Evaluator::Area(int64_t i) const {
  const int64_t column = score_columns_ == 1 ? 0 : i;
  std::vector<ScoredSample> samples;
  samples.reserve(scores_.size() / score_columns_);
  for (size_t at = column; at < scores_.size(); at += score_columns_) {
    const bool positive = sides_ ? score_sides_[at] : score_classes_[at / score_columns_] == i;
    samples.push_back({scores_[at], positive});
  }
  return AreaUnderCurve(std::move(samples));
}

void Evaluator::Fill(v1::Evaluation* evaluation) const {
  if (!values_.empty()) {
    std::vector<double> shares;
    if (values_[kValueSquares] > 0) shares.push_back(1 - values_[kValueErrors] / values_[kValueSquares]);
    SetMean(MetricName(v1::METRIC_R2, training_), shares, evaluation);
    return;
  }
  v1::ClassificationReport* report = evaluation->mutable_classification();
  report->Clear();
  std::vector<double> precisions;
  std::vector<double> recalls;
  std::vector<double> f1s;
  // Several sides are not classes of a single choice.
  const bool counted = !sides_ || score_columns_ == 1;
  for (int64_t c = 0; c < (counted ? classes_ : 0); ++c) {
    const auto right = static_cast<double>(right_[c]);
    v1::ClassMeasures* measures = report->add_classes();
    measures->set_samples(own_[c]);
    measures->set_precision(Quotient(right, static_cast<double>(given_[c])));
    measures->set_recall(Quotient(right, static_cast<double>(own_[c])));
    measures->set_f1(Quotient(2 * right, static_cast<double>(given_[c] + own_[c])));
    // An ignored class says nothing of the network. Neither does a class without samples and predictions.
    if (ignore_index_ == c || given_[c] + own_[c] == 0) continue;
    precisions.push_back(measures->precision());
    recalls.push_back(measures->recall());
    f1s.push_back(measures->f1());
  }
  const auto set_mean = [&](v1::Metric metric, const std::vector<double>& numbers) {
    if (asked(metric)) SetMean(MetricName(metric, training_), numbers, evaluation);
  };
  set_mean(v1::METRIC_PRECISION, precisions);
  set_mean(v1::METRIC_RECALL, recalls);
  set_mean(v1::METRIC_F1, f1s);
  if (asked(v1::METRIC_CONFUSION_MATRIX)) {
    report->mutable_confusion_matrix()->set_classes(classes_);
    for (const int64_t count : matrix_) report->mutable_confusion_matrix()->add_counts(count);
  }
  if (!asked(v1::METRIC_AUC)) return;
  std::vector<double> areas;
  // Two classes or a single side have a single area, that of the second class.
  const bool binary = score_columns_ == 1;
  for (int64_t i = binary ? 1 : 0; i < (binary ? 2 : score_columns_); ++i) {
    const std::optional<double> area = Area(i);
    if (!area.has_value()) continue;
    areas.push_back(*area);
    if (counted) report->mutable_classes(static_cast<int>(i))->set_auc(*area);
  }
  set_mean(v1::METRIC_AUC, areas);
}

}  // namespace tandem
