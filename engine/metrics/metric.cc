#include "engine/metrics/metric.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"

namespace tandem {
namespace {

constexpr int64_t kDefaultTopK = 5;

// Returns whether the loss is of classes.
bool IsOfClasses(const v1::Loss& loss) {
  return loss.has_softmax_cross_entropy() || loss.has_negative_log_likelihood() || loss.has_hinge();
}
bool IsOfNumbers(const v1::Loss& loss) {
  return loss.has_mse() || loss.has_l1() || loss.has_huber() || loss.has_smooth_l1();
}
bool IsOfSides(const v1::Loss& loss) { return loss.has_binary_cross_entropy_with_logits(); }

// Returns why the metric does not fit the loss, or "".
std::string LossFault(v1::Metric metric, const v1::Loss& loss) {
  switch (metric) {
    case v1::METRIC_ACCURACY:
    case v1::METRIC_PRECISION:
    case v1::METRIC_RECALL:
    case v1::METRIC_F1:
    case v1::METRIC_CONFUSION_MATRIX:
    case v1::METRIC_AUC:
      return IsOfClasses(loss) || IsOfSides(loss)
                 ? ""
                 : "is of classes, but the loss is of values; give mae or rmse";
    case v1::METRIC_TOP_K:
      return IsOfClasses(loss) ? "" : "is of classes, but the loss is of values; give mae or rmse";
    case v1::METRIC_MAE:
    case v1::METRIC_RMSE:
    case v1::METRIC_R2:
      return IsOfNumbers(loss) ? "" : "goes with mse, l1, huber and smooth_l1 alone; give another metric";
    case v1::METRIC_PERPLEXITY: {
      const bool plain =
          loss.has_softmax_cross_entropy()
              ? loss.softmax_cross_entropy().label_smoothing() == 0 &&
                    loss.softmax_cross_entropy().class_weights().empty() &&
                    !loss.softmax_cross_entropy().balance_classes()
              : loss.has_negative_log_likelihood() && loss.negative_log_likelihood().class_weights().empty();
      return plain ? ""
                   : "goes with softmax_cross_entropy and negative_log_likelihood alone, without "
                     "class_weights, balance_classes and label_smoothing";
    }
    default:
      break;
  }
  return absl::StrCat("is ", static_cast<int>(metric), ", which is no metric; give one such as accuracy");
}

// Returns why the metric does not fit the targets, or "".
std::string TargetFault(v1::Metric metric, const v1::Loss& loss, const Target& target, const Shape& output,
                        int64_t validation_samples) {
  if (IsMetered(metric) || metric == v1::METRIC_R2) return "";
  if (target.kind == TargetKind::kTokens) return "is not measured for tokens; give accuracy or perplexity";
  const int64_t outputs = output.elements();
  const bool several = IsOfSides(loss) && outputs != 1;
  if (several && metric != v1::METRIC_AUC) {
    return absl::StrCat("is of one output where the loss is binary_cross_entropy_with_logits, but there are ",
                        outputs, "; give accuracy or auc");
  }
  const int64_t most = metric == v1::METRIC_CONFUSION_MATRIX ? kMaxConfusedClasses : kMaxMeasuredClasses;
  const int64_t classes = IsOfSides(loss) ? outputs : target.classes;
  if (classes > most) {
    return absl::StrCat("is for at most ", most, " classes, but there are ", classes, "; leave it out");
  }
  if (metric == v1::METRIC_AUC && validation_samples > kMaxScores / std::max<int64_t>(1, outputs)) {
    return absl::StrCat("is for at most ", kMaxScores, " probabilities, but there are ", outputs,
                        " for each of ", validation_samples,
                        " validation samples; leave it out or set validation_limit");
  }
  return "";
}

}  // namespace

void FillMetricDefaults(v1::Training* training) {
  if (training->metrics().empty()) {
    if (IsOfClasses(training->loss()) || IsOfSides(training->loss()))
      training->add_metrics(v1::METRIC_ACCURACY);
    if (IsOfNumbers(training->loss())) training->add_metrics(v1::METRIC_MAE);
  }
  const bool top = std::find(training->metrics().begin(), training->metrics().end(), v1::METRIC_TOP_K) !=
                   training->metrics().end();
  if (top && training->top_k() == 0) training->set_top_k(kDefaultTopK);
}

absl::Status CheckMetrics(const v1::Training& training) {
  FieldViolations violations;
  std::set<int> seen;
  for (int i = 0; i < training.metrics_size(); ++i) {
    const std::string field = absl::StrCat("metrics[", i, "]");
    const auto metric = static_cast<v1::Metric>(training.metrics(i));
    // CheckLoss reports a missing loss.
    const bool known = v1::Metric_IsValid(metric) && metric != v1::METRIC_UNSPECIFIED;
    if (!known || training.loss().kind_case() != v1::Loss::KIND_NOT_SET) {
      const std::string fault = LossFault(metric, training.loss());
      if (!fault.empty()) violations.Add(field, fault);
    }
    if (!seen.insert(metric).second) violations.Add(field, "is given twice");
  }
  if (training.top_k() < 0) {
    violations.Add("top_k", absl::StrCat("is ", training.top_k(), "; it must be at least 1"));
  } else if (training.top_k() > 0 && seen.count(v1::METRIC_TOP_K) == 0) {
    violations.Add("top_k", "is for the metric top_k; give top_k in metrics too");
  }
  return violations.ToStatus();
}

absl::Status CheckMetricTargets(const v1::Training& training, const Target& target, const Shape& output,
                                int64_t validation_samples) {
  FieldViolations violations;
  for (int i = 0; i < training.metrics_size(); ++i) {
    const auto metric = static_cast<v1::Metric>(training.metrics(i));
    const std::string fault = TargetFault(metric, training.loss(), target, output, validation_samples);
    if (!fault.empty()) violations.Add(absl::StrCat("metrics[", i, "]"), fault);
    if (metric == v1::METRIC_TOP_K && training.top_k() > target.classes) {
      violations.Add("top_k", absl::StrCat("is ", training.top_k(), ", more than the ", target.classes,
                                           " classes; set it to a smaller number"));
    }
  }
  return violations.ToStatus();
}

std::string MetricName(v1::Metric metric, const v1::Training& training) {
  switch (metric) {
    case v1::METRIC_ACCURACY:
      return "accuracy";
    case v1::METRIC_TOP_K:
      return absl::StrCat("top_", training.top_k(), "_accuracy");
    case v1::METRIC_PRECISION:
      return "precision";
    case v1::METRIC_RECALL:
      return "recall";
    case v1::METRIC_F1:
      return "f1";
    case v1::METRIC_CONFUSION_MATRIX:
      return "confusion_matrix";
    case v1::METRIC_AUC:
      return "auc";
    case v1::METRIC_MAE:
      return "mae";
    case v1::METRIC_RMSE:
      return "rmse";
    case v1::METRIC_PERPLEXITY:
      return "perplexity";
    case v1::METRIC_R2:
      return "r2";
    default:
      return "unknown";
  }
}

bool IsMetered(v1::Metric metric) {
  switch (metric) {
    case v1::METRIC_PRECISION:
    case v1::METRIC_RECALL:
    case v1::METRIC_F1:
    case v1::METRIC_CONFUSION_MATRIX:
    case v1::METRIC_AUC:
    case v1::METRIC_R2:
      return false;
    default:
      return true;
  }
}

}  // namespace tandem
