#include "engine/graph/ops/classification.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/backends/reference/kernel.h"
#include "engine/base/status_macros.h"

namespace tandem::reference {
namespace {

absl::Status CheckLabels(const Tensor& labels, int64_t classes) {
  for (const int32_t label : labels.data<int32_t>()) {
    if (label < 0 || label >= classes) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", label, " is not one of ", classes, " classes"));
    }
  }
  return absl::OkStatus();
}

// Returns whether score `c` is better than the score of `target`. Larger scores are better, of equal scores
// the first, and NaN is better than every number.
bool ComesBefore(absl::Span<const double> scores, int64_t c, int64_t target) {
  if (std::isnan(scores[c]) || std::isnan(scores[target])) {
    return std::isnan(scores[c]) && (!std::isnan(scores[target]) || c < target);
  }
  return scores[c] > scores[target] || (scores[c] == scores[target] && c < target);
}

}  // namespace

absl::Status SoftmaxCrossEntropy(const KernelCall& call) {
  const int64_t classes = call.inputs[0]->shape()[-1];
  const int64_t samples = call.inputs[0]->elements() / classes;
  TANDEM_RETURN_IF_ERROR(CheckLabels(*call.inputs[1], classes));
  const absl::Span<const int32_t> labels = call.inputs[1]->data<int32_t>();
  double loss = 0;
  for (int64_t n = 0; n < samples; ++n) {
    const absl::Span<const double> logits = Numbers(call.inputs[0]).subspan(n * classes, classes);
    const absl::Span<double> probabilities = Numbers(call.outputs[1]).subspan(n * classes, classes);
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    for (int64_t c = 0; c < classes; ++c) probabilities[c] = std::exp(logits[c] - largest) / sum;
    loss += std::log(sum) - (logits[labels[n]] - largest);
  }
  Numbers(call.outputs[0])[0] = loss / samples;
  return absl::OkStatus();
}

absl::Status SoftmaxCrossEntropyGrad(const KernelCall& call) {
  const int64_t classes = call.inputs[0]->shape()[-1];
  const int64_t samples = call.inputs[0]->elements() / classes;
  TANDEM_RETURN_IF_ERROR(CheckLabels(*call.inputs[1], classes));
  const absl::Span<const int32_t> labels = call.inputs[1]->data<int32_t>();
  const double grad_loss = Numbers(call.inputs[2])[0];
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t c = 0; c < classes; ++c) {
      const double target = labels[n] == c ? 1 : 0;
      const double probability = Numbers(call.inputs[0])[n * classes + c];
      Numbers(call.outputs[0])[n * classes + c] = grad_loss * (probability - target) / samples;
    }
  }
  return absl::OkStatus();
}

absl::Status CountCorrect(const KernelCall& call) {
  const auto& op = call.op<CountCorrectOp>();
  const int64_t classes = call.inputs[0]->shape()[-1];
  const int64_t rows = call.inputs[0]->elements() / classes;
  const bool mixed = IsFloatingPoint(call.inputs[1]->dtype());
  double correct = 0;
  for (int64_t n = 0; n < rows; ++n) {
    const absl::Span<const double> scores = Numbers(call.inputs[0]).subspan(n * classes, classes);
    int64_t target = 0;
    if (mixed) {
      const absl::Span<const double> shares = Numbers(call.inputs[1]).subspan(n * classes, classes);
      target = std::max_element(shares.begin(), shares.end()) - shares.begin();
    } else {
      target = call.inputs[1]->data<int32_t>()[n];
      if (op.ignore_index == target) continue;
      if (target < 0 || target >= classes) continue;
    }
    int64_t before = 0;
    for (int64_t c = 0; c < classes; ++c) before += ComesBefore(scores, c, target) ? 1 : 0;
    if (before < op.k) ++correct;
  }
  Numbers(call.outputs[0])[0] = correct;
  return absl::OkStatus();
}

absl::Status CountLabels(const KernelCall& call) {
  const absl::Span<const int32_t> labels = call.inputs[0]->data<int32_t>();
  const int64_t ignored = call.op<CountLabelsOp>().ignore_index;
  double count = 0;
  for (const int32_t label : labels) count += label != ignored ? 1 : 0;
  Numbers(call.outputs[0])[0] = count;
  return absl::OkStatus();
}

absl::Status CountSides(const KernelCall& call) {
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  double count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double target = IsFloatingPoint(call.inputs[1]->dtype()) ? Numbers(call.inputs[1])[i]
                                                                   : call.inputs[1]->data<int32_t>()[i];
    if (!std::isnan(x[i]) && (x[i] > 0) == (target > 0.5)) ++count;
  }
  Numbers(call.outputs[0])[0] = count;
  return absl::OkStatus();
}

}  // namespace tandem::reference
