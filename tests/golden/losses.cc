#include "tests/golden/losses.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/cosine_embedding.h"
#include "engine/graph/ops/value_loss.h"
#include "tests/golden/golden_case.h"

namespace tandem {
namespace {

using nlohmann::json;

// The label that PyTorch ignores by default.
constexpr int64_t kIgnoreIndex = -100;

absl::StatusOr<bool> ReadsSum(Attributes& attributes) {
  const std::string reduction = attributes.Text("reduction", "mean");
  if (reduction == "sum") return true;
  if (reduction == "mean") return false;
  return absl::UnimplementedError(absl::StrCat("the reduction ", reduction, " is not offered yet"));
}

// Checks that labels are classes or ignored. Returns whether any label is ignored.
absl::StatusOr<bool> CheckLabels(const Tensor& labels, int64_t classes, int64_t ignored) {
  bool ignores = false;
  for (const int64_t label : labels.data<int64_t>()) {
    if (label == ignored) {
      ignores = true;
    } else if (label < 0 || label >= classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " is not one of ", classes, " classes"));
    }
  }
  return ignores;
}

absl::StatusOr<ValueId> AddClassLoss(Graph& graph, const std::string& type, Attributes& attributes,
                                     const GoldenLoss& loss) {
  ClassLossSettings settings;
  settings.weights = loss.weight;
  TANDEM_ASSIGN_OR_RETURN(settings.sum, ReadsSum(attributes));
  std::optional<int64_t> ignored;
  if (type == "multi_margin") {
    settings.mode = ClassLossSettings::Mode::kHinge;
    settings.p = static_cast<int>(attributes.Whole("p", 1));
    settings.margin = attributes.Number("margin", 1);
  } else {
    if (type == "nll") settings.mode = ClassLossSettings::Mode::kLogLikelihood;
    if (type == "cross_entropy") settings.label_smoothing = attributes.Number("label_smoothing", 0);
    ignored = attributes.Whole("ignore_index", kIgnoreIndex);
  }
  if (loss.target_values.dtype() == DType::kInt64) {
    const int64_t classes = graph.value(loss.input).shape[-1];
    TANDEM_ASSIGN_OR_RETURN(const bool ignores,
                            CheckLabels(loss.target_values, classes, ignored.value_or(kIgnoreIndex)));
    if (ignores) settings.ignore_index = ignored;
  }
  const bool plain = type == "cross_entropy" && settings.weights.empty() && settings.label_smoothing == 0 &&
                     !settings.ignore_index.has_value() && !settings.sum &&
                     loss.target_values.dtype() == DType::kInt64;
  std::shared_ptr<const Op> op;
  if (plain) {
    op = std::make_shared<SoftmaxCrossEntropyOp>();
  } else {
    op = std::make_shared<ClassLossOp>(std::move(settings));
  }
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs,
                          graph.AddNode(std::move(op), {loss.input, loss.target}));
  return outputs[0];
}

absl::StatusOr<ValueId> AddValueLoss(Graph& graph, const std::string& type, Attributes& attributes,
                                     const GoldenLoss& loss) {
  using Mode = ValueLossSettings::Mode;
  using Reduction = ValueLossSettings::Reduction;
  ValueLossSettings settings;
  settings.weights = loss.weight;
  settings.positive_weights = loss.pos_weight;
  if (type == "mse") {
    settings.mode = Mode::kSquared;
  } else if (type == "l1") {
    settings.mode = Mode::kAbsolute;
  } else if (type == "huber") {
    settings.mode = Mode::kHuber;
    settings.width = attributes.Number("delta", 1);
  } else if (type == "smooth_l1") {
    settings.mode = Mode::kSmoothL1;
    settings.width = attributes.Number("beta", 1);
  } else if (type == "binary_cross_entropy_with_logits") {
    settings.mode = Mode::kLogistic;
  } else if (type == "kl_div") {
    settings.mode = attributes.Flag("log_target", false) ? Mode::kKlOfLogs : Mode::kKl;
  } else {
    return absl::UnimplementedError(absl::StrCat("loss ", type, " is not offered yet"));
  }
  if (type == "kl_div" && attributes.Text("reduction", "mean") == "batchmean") {
    settings.reduction = Reduction::kBatchMean;
  } else {
    TANDEM_ASSIGN_OR_RETURN(const bool sums, ReadsSum(attributes));
    settings.reduction = sums ? Reduction::kSum : Reduction::kMean;
  }
  return graph.Add(std::make_shared<ValueLossOp>(std::move(settings)), {loss.input, loss.target});
}

}  // namespace

bool IsOfClasses(const json& attrs) {
  const std::string type = attrs.value("type", "");
  return type == "cross_entropy" || type == "nll" || type == "multi_margin";
}

absl::StatusOr<ValueId> AddLoss(Graph& graph, const json& attrs, const GoldenLoss& loss) {
  Attributes attributes(attrs);
  const std::string type = attributes.Text("type", "");
  absl::StatusOr<ValueId> value;
  if (IsOfClasses(attrs)) {
    value = AddClassLoss(graph, type, attributes, loss);
  } else if (type == "cosine_embedding") {
    TANDEM_ASSIGN_OR_RETURN(const bool sums, ReadsSum(attributes));
    value = graph.Add(std::make_shared<CosineEmbeddingOp>(attributes.Number("margin", 0), sums),
                      {loss.input, loss.target});
  } else {
    value = AddValueLoss(graph, type, attributes, loss);
  }
  TANDEM_RETURN_IF_ERROR(value.status());
  TANDEM_RETURN_IF_ERROR(attributes.Finish());
  return value;
}

}  // namespace tandem
