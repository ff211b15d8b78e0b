#include "engine/backends/cpu/classification.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/classification.h"

namespace tandem::cpu {
namespace {

// Computes the probabilities of a sample. Returns -log of the probability of `label`.
double SoftmaxRow(const Kernels& kernels, const float* logits, int64_t classes, int32_t label,
                  float* probabilities) {
  // `probabilities` may be the memory of `logits`.
  const float label_logit = logits[label];
  const SoftmaxSum sum = kernels.softmax_row(logits, classes, probabilities);
  return std::log(static_cast<double>(sum.sum)) - (static_cast<double>(label_logit) - sum.largest);
}

// Returns the number of scores that are better than the score of `target`. Larger scores are better, of equal
// scores the first, and NaN is better than every number.
int64_t CountBefore(const float* scores, int64_t classes, int64_t target) {
  const float score = scores[target];
  int64_t count = 0;
  if (std::isnan(score)) {
    for (int64_t c = 0; c < target; ++c) count += std::isnan(scores[c]) ? 1 : 0;
    return count;
  }
  // "Not less": greater, equal or NaN.
  for (int64_t c = 0; c < target; ++c) count += scores[c] < score ? 0 : 1;
  for (int64_t c = target + 1; c < classes; ++c) count += scores[c] <= score ? 0 : 1;
  return count;
}

}  // namespace

absl::Status LowerSoftmaxCrossEntropy(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t classes = shape[-1];
  const int64_t rows = shape.elements() / classes;
  TANDEM_ASSIGN_OR_RETURN(const Region logits, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[1]));
  const Region loss = lowering.DefinePlain(node.outputs[0]);
  const Region probabilities = lowering.DefinePlain(node.outputs[1]);
  const Region losses = lowering.Scratch(rows * static_cast<int64_t>(sizeof(double)));
  lowering.Emit({.name = "softmax_cross_entropy",
                 .reads = {logits, labels},
                 .writes = {loss, probabilities, losses},
                 .in_place = {{1, 0}},
                 .run = [=](const RunContext& run) {
                   const float* x = run.At<const float>(logits);
                   const int32_t* label = run.At<const int32_t>(labels);
                   float* p = run.At<float>(probabilities);
                   double* row_losses = run.At<double>(losses);
                   run.team->For(rows, [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; ++n) {
                       row_losses[n] =
                           SoftmaxRow(*run.kernels, x + n * classes, classes, label[n], p + n * classes);
                     }
                   });
                   double sum = 0;
                   for (int64_t n = 0; n < rows; ++n) sum += row_losses[n];
                   *run.At<float>(loss) = static_cast<float>(sum / rows);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerSoftmaxCrossEntropyGrad(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t classes = shape[-1];
  const int64_t rows = shape.elements() / classes;
  TANDEM_ASSIGN_OR_RETURN(const Region probabilities, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "softmax_cross_entropy_grad",
                 .reads = {probabilities, labels, grad_loss},
                 .writes = {grad},
                 .in_place = {{0, 0}},
                 .run = [=](const RunContext& run) {
                   const float* p = run.At<const float>(probabilities);
                   const int32_t* label = run.At<const int32_t>(labels);
                   float* g = run.At<float>(grad);
                   const float factor = *run.At<const float>(grad_loss) / static_cast<float>(rows);
                   run.team->For(rows, [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; ++n) {
                       for (int64_t c = 0; c < classes; ++c) {
                         g[n * classes + c] = factor * (p[n * classes + c] - (c == label[n] ? 1.0f : 0.0f));
                       }
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCountCorrect(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const CountCorrectOp&>(*node.op);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const int64_t classes = shape[-1];
  const int64_t rows = shape.elements() / classes;
  const bool mixed = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (mixed) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region logits, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[1]));
  const Region count = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "count_correct",
                 .reads = {logits, labels},
                 .writes = {count},
                 .run = [=, k = op.k, ignored = op.ignore_index](const RunContext& run) {
                   const float* x = run.At<const float>(logits);
                   int64_t correct = 0;
                   for (int64_t n = 0; n < rows; ++n) {
                     int64_t target = 0;
                     if (mixed) {
                       const float* shares = run.At<const float>(labels) + n * classes;
                       target = std::max_element(shares, shares + classes) - shares;
                     } else {
                       target = run.At<const int32_t>(labels)[n];
                       if (ignored == target) continue;
                     }
                     correct += CountBefore(x + n * classes, classes, target) < k ? 1 : 0;
                   }
                   *run.At<float>(count) = static_cast<float>(correct);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCountLabels(Lowering& lowering, const Node& node) {
  const int64_t ignored = static_cast<const CountLabelsOp&>(*node.op).ignore_index;
  const int64_t labels_count = lowering.shape(node.inputs[0]).elements();
  TANDEM_ASSIGN_OR_RETURN(const Region labels, lowering.GetPlain(node.inputs[0]));
  const Region count = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit(
      {.name = "count_labels", .reads = {labels}, .writes = {count}, .run = [=](const RunContext& run) {
         const int32_t* label = run.At<const int32_t>(labels);
         int64_t counted = 0;
         for (int64_t i = 0; i < labels_count; ++i) counted += label[i] != ignored ? 1 : 0;
         *run.At<float>(count) = static_cast<float>(counted);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerCountSides(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const bool numbers = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (numbers) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  const int64_t elements = lowering.shape(node.inputs[0]).elements();
  TANDEM_ASSIGN_OR_RETURN(const Region x, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region target, lowering.GetPlain(node.inputs[1]));
  const Region count = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit(
      {.name = "count_sides", .reads = {x, target}, .writes = {count}, .run = [=](const RunContext& run) {
         const float* scores = run.At<const float>(x);
         int64_t right = 0;
         for (int64_t i = 0; i < elements; ++i) {
           const bool positive =
               numbers ? run.At<const float>(target)[i] > 0.5f : run.At<const int32_t>(target)[i] > 0;
           right += !std::isnan(scores[i]) && (scores[i] > 0) == positive ? 1 : 0;
         }
         *run.At<float>(count) = static_cast<float>(right);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerAccumulate(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Region meter, lowering.GetPlain(node.inputs[0]));
  std::vector<Region> reads = {meter};
  std::vector<std::pair<Region, DType>> scalars;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const DType dtype = lowering.value(node.inputs[i]).dtype;
    if (dtype != DType::kFloat64) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
    TANDEM_ASSIGN_OR_RETURN(const Region scalar, lowering.GetPlain(node.inputs[i]));
    reads.push_back(scalar);
    scalars.emplace_back(scalar, dtype);
  }
  lowering.Emit(
      {.name = "accumulate",
       .reads = std::move(reads),
       .writes = {meter},
       .run = [meter, scalars = std::move(scalars),
               weights = static_cast<const AccumulateOp&>(*node.op).weights](const RunContext& run) {
         double* sums = run.At<double>(meter);
         for (size_t i = 0; i < scalars.size(); ++i) {
           const auto& [scalar, dtype] = scalars[i];
           sums[i] += weights[i] * (dtype == DType::kFloat64 ? *run.At<const double>(scalar)
                                                             : *run.At<const float>(scalar));
         }
         return absl::OkStatus();
       }});
  lowering.Changed(node.inputs[0]);
  return absl::OkStatus();
}

}  // namespace tandem::cpu
