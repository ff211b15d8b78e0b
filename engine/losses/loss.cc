#include "engine/losses/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/cosine_embedding.h"
#include "engine/graph/ops/value_loss.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;

// Returns the name of the set kind, such as "mse".
std::string KindOf(const v1::Loss& loss) {
  const FieldDescriptor* kind =
      loss.GetReflection()->GetOneofFieldDescriptor(loss, v1::Loss::descriptor()->FindOneofByName("kind"));
  return kind == nullptr ? "" : kind->name();
}

// Returns the loss's class weights, or an empty vector.
std::vector<double> ClassWeightsOf(const v1::Loss& loss) {
  const auto copy = [](const auto& weights) { return std::vector<double>(weights.begin(), weights.end()); };
  switch (loss.kind_case()) {
    case v1::Loss::kSoftmaxCrossEntropy:
      return copy(loss.softmax_cross_entropy().class_weights());
    case v1::Loss::kNegativeLogLikelihood:
      return copy(loss.negative_log_likelihood().class_weights());
    case v1::Loss::kHinge:
      return copy(loss.hinge().class_weights());
    default:
      return {};
  }
}

void CheckWeights(const std::vector<double>& weights, const std::string& field, FieldViolations& violations) {
  for (size_t i = 0; i < weights.size(); ++i) {
    CheckAtLeastZero(absl::StrCat(field, "[", i, "]"), weights[i], violations);
  }
  const auto is_zero = [](double weight) { return weight == 0; };
  if (!weights.empty() && std::all_of(weights.begin(), weights.end(), is_zero)) {
    violations.Add(field, "are all 0; one must be above it");
  }
}

// Returns the settings of a loss of classes.
std::optional<ClassLossSettings> ClassSettings(const v1::Loss& loss) {
  ClassLossSettings settings;
  settings.weights = ClassWeightsOf(loss);
  settings.ignore_index = IgnoreIndexOf(loss);
  switch (loss.kind_case()) {
    case v1::Loss::kSoftmaxCrossEntropy:
      settings.label_smoothing = loss.softmax_cross_entropy().label_smoothing();
      return settings;
    case v1::Loss::kNegativeLogLikelihood:
      settings.mode = ClassLossSettings::Mode::kLogLikelihood;
      return settings;
    case v1::Loss::kHinge:
      settings.mode = ClassLossSettings::Mode::kHinge;
      settings.p = loss.hinge().p();
      settings.margin = loss.hinge().margin();
      return settings;
    default:
      return std::nullopt;
  }
}

// Returns the settings of a loss of values.
std::optional<ValueLossSettings> ValueSettings(const v1::Loss& loss) {
  using Mode = ValueLossSettings::Mode;
  ValueLossSettings settings;
  switch (loss.kind_case()) {
    case v1::Loss::kMse:
      return settings;
    case v1::Loss::kL1:
      settings.mode = Mode::kAbsolute;
      return settings;
    case v1::Loss::kHuber:
      settings.mode = Mode::kHuber;
      settings.width = loss.huber().delta();
      return settings;
    case v1::Loss::kSmoothL1:
      settings.mode = Mode::kSmoothL1;
      settings.width = loss.smooth_l1().beta();
      return settings;
    case v1::Loss::kBinaryCrossEntropyWithLogits: {
      settings.mode = Mode::kLogistic;
      const auto& weights = loss.binary_cross_entropy_with_logits().pos_weight();
      settings.positive_weights.assign(weights.begin(), weights.end());
      return settings;
    }
    case v1::Loss::kKlDivergence:
      settings.mode = Mode::kKl;
      settings.reduction = ValueLossSettings::Reduction::kBatchMean;
      return settings;
    default:
      return std::nullopt;
  }
}

// Returns whether the loss accepts data of two classes as pairs of vectors, or as numbers on either side of
// 0.
bool TakesTwoClasses(const v1::Loss& loss) {
  return loss.has_binary_cross_entropy_with_logits() || loss.has_cosine_embedding();
}

bool Takes(const v1::Loss& loss, const Target& target) {
  switch (target.kind) {
    case TargetKind::kClass:
      return ClassSettings(loss).has_value() || (TakesTwoClasses(loss) && target.classes == 2);
    case TargetKind::kTokens:
      return loss.has_softmax_cross_entropy() || loss.has_negative_log_likelihood();
    case TargetKind::kClassProbabilities:
      return loss.has_softmax_cross_entropy();
    case TargetKind::kValues:
      return ValueSettings(loss).has_value() || loss.has_cosine_embedding();
  }
  return false;
}

std::string TargetFault(const v1::Loss& loss, const Target& target) {
  switch (target.kind) {
    case TargetKind::kClass:
      if (TakesTwoClasses(loss)) {
        return absl::StrCat("takes values or two classes, but the data set has ", target.classes,
                            " classes; give softmax_cross_entropy");
      }
      return "takes values, but the data set's targets are classes; give softmax_cross_entropy, "
             "negative_log_likelihood or hinge";
    case TargetKind::kTokens:
      return "does not take tokens, which the data set's targets are; give softmax_cross_entropy";
    case TargetKind::kClassProbabilities:
      return "does not take the mixtures of classes that mixup and cutmix make; give softmax_cross_entropy, "
             "or "
             "leave them out of dataset.augmentation";
    case TargetKind::kValues:
      break;
  }
  return "takes classes, but the data set's targets are values; if a table's column has class numbers, give "
         "csv.targets: class where the data set is described; else give mse, l1, huber, smooth_l1, "
         "binary_cross_entropy_with_logits, kl_divergence or cosine_embedding";
}

}  // namespace

void FillLossDefaults(v1::Loss* loss) {
  if (loss->has_huber() && !loss->huber().has_delta()) loss->mutable_huber()->set_delta(1);
  if (loss->has_smooth_l1() && !loss->smooth_l1().has_beta()) loss->mutable_smooth_l1()->set_beta(1);
  if (!loss->has_hinge()) return;
  if (loss->hinge().p() == 0) loss->mutable_hinge()->set_p(1);
  if (!loss->hinge().has_margin()) loss->mutable_hinge()->set_margin(1);
}

absl::Status CheckLoss(const v1::Loss& loss) {
  FieldViolations violations;
  const std::string kind = KindOf(loss);
  const auto check = [&](const char* field, double value, bool good, const char* wanted) {
    if (good && std::isfinite(value)) return;
    violations.Add(absl::StrCat(kind, ".", field), absl::StrCat("is ", value, "; it must be ", wanted));
  };
  CheckWeights(ClassWeightsOf(loss), absl::StrCat(kind, ".class_weights"), violations);
  switch (loss.kind_case()) {
    case v1::Loss::kSoftmaxCrossEntropy: {
      const double smoothing = loss.softmax_cross_entropy().label_smoothing();
      check("label_smoothing", smoothing, smoothing >= 0 && smoothing < 1, "in [0, 1)");
      if (loss.softmax_cross_entropy().balance_classes() &&
          !loss.softmax_cross_entropy().class_weights().empty()) {
        violations.Add(absl::StrCat(kind, ".balance_classes"),
                       "is given together with class_weights; leave one of them out");
      }
      break;
    }
    case v1::Loss::kHuber:
      check("delta", loss.huber().delta(), loss.huber().delta() > 0, "finite and above 0");
      break;
    case v1::Loss::kSmoothL1:
      check("beta", loss.smooth_l1().beta(), loss.smooth_l1().beta() >= 0, "finite and at least 0");
      break;
    case v1::Loss::kBinaryCrossEntropyWithLogits:
      CheckWeights(ValueSettings(loss)->positive_weights, absl::StrCat(kind, ".pos_weight"), violations);
      break;
    case v1::Loss::kHinge:
      check("p", loss.hinge().p(), loss.hinge().p() == 1 || loss.hinge().p() == 2, "1 or 2");
      check("margin", loss.hinge().margin(), true, "finite");
      break;
    case v1::Loss::kCosineEmbedding: {
      const double margin = loss.cosine_embedding().margin();
      check("margin", margin, margin >= -1 && margin <= 1, "in [-1, 1]");
      break;
    }
    case v1::Loss::KIND_NOT_SET:
      violations.Add(
          "",
          "names no loss that is known; give softmax_cross_entropy, negative_log_likelihood, mse, l1, "
          "huber, smooth_l1, binary_cross_entropy_with_logits, kl_divergence, hinge or "
          "cosine_embedding");
      break;
    default:
      break;
  }
  return violations.ToStatus();
}

absl::Status CheckLossTarget(const v1::Loss& loss, const Target& target) {
  FieldViolations violations;
  const std::string kind = KindOf(loss);
  if (kind.empty()) return absl::OkStatus();  // CheckLoss reports the error.
  if (!Takes(loss, target)) {
    violations.Add(kind, TargetFault(loss, target));
    return violations.ToStatus();
  }
  if (loss.softmax_cross_entropy().balance_classes() && target.kind != TargetKind::kClass) {
    violations.Add(absl::StrCat(kind, ".balance_classes"),
                   "needs a single class for each sample; leave it out");
  }
  const std::vector<double> weights = ClassWeightsOf(loss);
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != target.classes) {
    violations.Add(
        absl::StrCat(kind, ".class_weights"),
        absl::StrCat("are ", weights.size(), ", but the data set has ", target.classes, " classes"));
  }
  if (const std::optional<int64_t> ignored = IgnoreIndexOf(loss); ignored.has_value()) {
    const std::string field = absl::StrCat(kind, ".ignore_index");
    if (target.kind == TargetKind::kClassProbabilities) {
      violations.Add(field, "cannot be given where classes are mixed; leave out mixup and cutmix");
    } else if (*ignored < std::numeric_limits<int32_t>::min() || *ignored >= target.classes) {
      violations.Add(field, absl::StrCat("is ", *ignored, ", which no target is: they are from 0 to ",
                                         target.classes - 1, ", or negative"));
    }
  }
  if (target.ignored.has_value() && IgnoreIndexOf(loss) != *target.ignored) {
    const bool ignores = loss.has_softmax_cross_entropy() || loss.has_negative_log_likelihood();
    violations.Add(ignores ? absl::StrCat(kind, ".ignore_index") : kind,
                   absl::StrCat(ignores ? "is another number or missing" : "ignores no targets",
                                ", but targets hold ", *target.ignored, ", which is no class; give ",
                                ignores ? "" : "softmax_cross_entropy with ",
                                "ignore_index: ", *target.ignored, ", or leave such samples out"));
  }
  if (loss.has_binary_cross_entropy_with_logits()) {
    const int count = loss.binary_cross_entropy_with_logits().pos_weight_size();
    const int64_t last = target.kind == TargetKind::kValues && target.shape.rank() > 0 ? target.shape[-1] : 1;
    if (count > 1 && count != last) {
      violations.Add(
          absl::StrCat(kind, ".pos_weight"),
          absl::StrCat("has ", count, " numbers, but targets have ", last, " along their last dimension"));
    }
  }
  return violations.ToStatus();
}

bool TakesScaledTargets(const v1::Loss& loss) {
  return loss.has_mse() || loss.has_l1() || loss.has_huber() || loss.has_smooth_l1();
}

v1::Loss InScaleOf(double deviation, v1::Loss loss) {
  if (deviation == 0) return loss;
  if (loss.has_huber()) loss.mutable_huber()->set_delta(loss.huber().delta() / deviation);
  if (loss.has_smooth_l1()) loss.mutable_smooth_l1()->set_beta(loss.smooth_l1().beta() / deviation);
  return loss;
}

std::optional<int64_t> IgnoreIndexOf(const v1::Loss& loss) {
  if (loss.softmax_cross_entropy().has_ignore_index()) return loss.softmax_cross_entropy().ignore_index();
  if (loss.negative_log_likelihood().has_ignore_index()) return loss.negative_log_likelihood().ignore_index();
  return std::nullopt;
}

bool TakesProbabilities(const v1::Loss& loss) {
  return loss.has_binary_cross_entropy_with_logits() || loss.has_kl_divergence();
}

std::string OutputFault(const v1::Loss& loss, const Target& target, const Shape& output) {
  Shape wanted;
  std::string why;
  if (loss.has_cosine_embedding() && target.kind == TargetKind::kClass) {
    if (output.rank() == 2 && output[0] == 2) return "";
    return absl::StrCat("gives ", output.ToString(), ", but the loss needs [2, size]: a pair of vectors");
  }
  switch (target.kind) {
    case TargetKind::kClass:
    case TargetKind::kClassProbabilities:
      wanted = loss.has_binary_cross_entropy_with_logits() ? Shape({1}) : Shape({target.classes});
      why = loss.has_binary_cross_entropy_with_logits()
                ? "one output for the data set's second class"
                : absl::StrCat("one output for each of the data set's ", target.classes, " classes");
      break;
    case TargetKind::kTokens:
      wanted = Shape({target.shape.rank() > 0 ? target.shape[0] : 1, target.classes});
      why = absl::StrCat("at each position one output for each of the vocabulary's ", target.classes,
                         " tokens");
      break;
    case TargetKind::kValues:
      wanted = target.shape;
      why = "one output for each number of the data set's targets";
      break;
  }
  if (output == wanted) return "";
  return absl::StrCat("gives ", output.ToString(), ", but the loss needs ", wanted.ToString(), ": ", why);
}

absl::StatusOr<LossValues> AddLoss(const v1::Loss& loss, ValueId output, ValueId target, Graph& graph,
                                   LossReduction reduction) {
  TANDEM_RETURN_IF_ERROR(CheckLoss(loss));
  LossValues values;
  const bool numbers = IsFloatingPoint(graph.value(target).dtype);
  if (std::optional<ClassLossSettings> settings = ClassSettings(loss); settings.has_value()) {
    const bool weighted = !settings->weights.empty() || settings->ignore_index.has_value();
    // The weights of a hinge loss and of mixed classes do not divide.
    const bool weights_divide = weighted && !numbers && !loss.has_hinge();
    settings->sum = weights_divide && reduction == LossReduction::kSumIfWeighted;
    const bool plain = loss.has_softmax_cross_entropy() && !weighted && settings->label_smoothing == 0;
    std::shared_ptr<const Op> op;
    if (plain && !numbers) {
      op = std::make_shared<SoftmaxCrossEntropyOp>();
    } else {
      op = std::make_shared<ClassLossOp>(*std::move(settings));
    }
    TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                            graph.AddNode(std::move(op), {output, target}));
    values.loss = outputs[0];
    if (weights_divide) {
      values.sum = outputs[1];
      values.weight = outputs[2];
    }
    return values;
  }
  if (std::optional<ValueLossSettings> settings = ValueSettings(loss); settings.has_value()) {
    TANDEM_ASSIGN_OR_RETURN(values.loss,
                            graph.Add(std::make_shared<ValueLossOp>(*std::move(settings)), {output, target}));
    return values;
  }
  TANDEM_ASSIGN_OR_RETURN(
      values.loss, graph.Add(std::make_shared<CosineEmbeddingOp>(loss.cosine_embedding().margin(), false),
                             {output, target}));
  return values;
}

absl::Status RelabelClasses(const std::vector<int32_t>& labels, v1::Loss* loss) {
  if (labels.empty()) return absl::OkStatus();
  FieldViolations violations;
  const std::string kind = KindOf(*loss);
  const std::optional<int64_t> ignored = IgnoreIndexOf(*loss);
  const bool names_class = ignored.has_value() && *ignored >= 0;
  const std::set<int32_t> different(labels.begin(), labels.end());
  const auto& positive = loss->binary_cross_entropy_with_logits().pos_weight();
  const bool weighs_second =
      std::any_of(positive.begin(), positive.end(), [](double weight) { return weight != 1; });
  if (different.size() < labels.size()) {
    const char* const advice =
        "cannot be given, because several classes of the data set are one class of the loaded model; "
        "leave it out, or give the data set's classes different names";
    if (!ClassWeightsOf(*loss).empty()) violations.Add(absl::StrCat(kind, ".class_weights"), advice);
    if (names_class) violations.Add(absl::StrCat(kind, ".ignore_index"), advice);
    if (weighs_second) violations.Add(absl::StrCat(kind, ".pos_weight"), advice);
  } else if (weighs_second && labels == std::vector<int32_t>{1, 0}) {
    violations.Add(
        absl::StrCat(kind, ".pos_weight"),
        "cannot weigh the data set's second class, because it is the first class of the loaded model; "
        "leave pos_weight out, or train without initial_weights");
  }
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  // CheckLossTarget reports other counts and numbers.
  const auto reorder = [&](google::protobuf::RepeatedField<double>* weights) {
    if (static_cast<size_t>(weights->size()) != labels.size()) return;
    const google::protobuf::RepeatedField<double> given = *weights;
    for (size_t i = 0; i < labels.size(); ++i) weights->Set(labels[i], given.Get(static_cast<int>(i)));
  };
  if (loss->has_softmax_cross_entropy()) {
    reorder(loss->mutable_softmax_cross_entropy()->mutable_class_weights());
  } else if (loss->has_negative_log_likelihood()) {
    reorder(loss->mutable_negative_log_likelihood()->mutable_class_weights());
  } else if (loss->has_hinge()) {
    reorder(loss->mutable_hinge()->mutable_class_weights());
  }
  if (!names_class || *ignored >= static_cast<int64_t>(labels.size())) return absl::OkStatus();
  if (loss->has_softmax_cross_entropy()) {
    loss->mutable_softmax_cross_entropy()->set_ignore_index(labels[*ignored]);
  } else {
    loss->mutable_negative_log_likelihood()->set_ignore_index(labels[*ignored]);
  }
  return absl::OkStatus();
}

void BalanceClasses(const std::vector<int64_t>& counts, v1::Loss* loss) {
  if (!loss->softmax_cross_entropy().balance_classes()) return;
  v1::SoftmaxCrossEntropy& softmax = *loss->mutable_softmax_cross_entropy();
  softmax.clear_balance_classes();
  const auto samples = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  for (const int64_t count : counts) {
    softmax.add_class_weights(
        count == 0 ? 0 : samples / (static_cast<double>(counts.size()) * static_cast<double>(count)));
  }
}

}  // namespace tandem
