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

}  // namespace

absl::Status SoftmaxCrossEntropy(const KernelCall& call) {
  const int64_t samples = call.inputs[0]->shape()[0];
  const int64_t classes = call.inputs[0]->shape()[1];
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
  const int64_t samples = call.inputs[0]->shape()[0];
  const int64_t classes = call.inputs[0]->shape()[1];
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
  const int64_t samples = call.inputs[0]->shape()[0];
  const int64_t classes = call.inputs[0]->shape()[1];
  const absl::Span<const int32_t> labels = call.inputs[1]->data<int32_t>();
  double correct = 0;
  for (int64_t n = 0; n < samples; ++n) {
    const absl::Span<const double> logits = Numbers(call.inputs[0]).subspan(n * classes, classes);
    int64_t largest = 0;
    for (int64_t c = 1; c < classes; ++c) {
      const bool larger = logits[c] > logits[largest] || std::isnan(logits[c]);
      if (larger && !std::isnan(logits[largest])) largest = c;
    }
    if (largest == labels[n]) ++correct;
  }
  Numbers(call.outputs[0])[0] = correct;
  return absl::OkStatus();
}

}  // namespace tandem::reference
