#include "engine/graph/ops/class_loss.h"

#include <cmath>
#include <utility>
#include <vector>

#include "engine/backends/cpu/losses.h"
#include "engine/base/status_macros.h"

namespace tandem::cpu {
namespace {

using Mode = ClassLossSettings::Mode;

// The data of a row's loss in a run. A row's target is a class, or probabilities if they are given.
struct ClassLossRows {
  const ClassLossSettings& settings;
  int64_t classes;
  const float* scores;
  const int32_t* labels;       // Null if there are probabilities.
  const float* probabilities;  // Null if there are labels.

  const float* x(int64_t n) const { return scores + n * classes; }
  bool Ignored(int64_t n) const { return labels != nullptr && settings.ignore_index == labels[n]; }
  // Returns the divisor of row n.
  double Divisor(int64_t n) const {
    if (Ignored(n)) return 0;
    return labels == nullptr ? 1 : settings.DivisorOf(labels[n]);
  }
  // Returns the weight a[c] of the op's header.
  float Weighted(int64_t n, int64_t c) const {
    const double e = settings.label_smoothing;
    const double share = labels == nullptr ? probabilities[n * classes + c] : (labels[n] == c ? 1 : 0);
    return static_cast<float>(settings.WeightOf(c) * ((1 - e) * share + e / static_cast<double>(classes)));
  }
};

float LargestOf(const float* x, int64_t count) {
  float largest = x[0];
  for (int64_t c = 1; c < count; ++c) largest = x[c] > largest ? x[c] : largest;
  return largest;
}

// Returns max(0, margin - x[target] + x[c]). NaN stays NaN.
float Violation(float margin, const float* x, int64_t target, int64_t c) {
  const float violation = margin - x[target] + x[c];
  return violation < 0 ? 0.0f : violation;
}

double LossOf(const ClassLossRows& rows, int64_t n) {
  if (rows.Ignored(n)) return 0;
  const ClassLossSettings& settings = rows.settings;
  const float* x = rows.x(n);
  double loss = 0;
  if (settings.mode == Mode::kHinge) {
    const int64_t target = rows.labels[n];
    for (int64_t c = 0; c < rows.classes; ++c) {
      if (c == target) continue;
      const double violation = Violation(static_cast<float>(settings.margin), x, target, c);
      loss += settings.p == 1 ? violation : violation * violation;
    }
    return settings.WeightOf(target) * loss / static_cast<double>(rows.classes);
  }
  double log_sum = 0;
  float largest = 0;
  if (settings.mode == Mode::kCrossEntropy) {
    largest = LargestOf(x, rows.classes);
    // A float would lose the small addends of a million classes.
    double sum = 0;
    for (int64_t c = 0; c < rows.classes; ++c) sum += std::exp(x[c] - largest);
    log_sum = std::log(sum);
  }
  for (int64_t c = 0; c < rows.classes; ++c) {
    const double weighted = rows.Weighted(n, c);
    // A class with weight 0 does not count, even if its logarithm is infinite.
    if (weighted != 0) loss += weighted * (log_sum - (static_cast<double>(x[c]) - largest));
  }
  return loss;
}

// Writes factor times the gradient of row n's loss to `grad`, which may be the row's memory.
void GradOf(const ClassLossRows& rows, int64_t n, float factor, float* grad) {
  const ClassLossSettings& settings = rows.settings;
  const float* x = rows.x(n);
  if (rows.Ignored(n)) {
    for (int64_t c = 0; c < rows.classes; ++c) grad[c] = 0;
    return;
  }
  if (settings.mode == Mode::kHinge) {
    const int64_t target = rows.labels[n];
    const float target_score = x[target];
    const float share =
        factor * static_cast<float>(settings.WeightOf(target)) / static_cast<float>(rows.classes);
    float target_grad = 0;
    for (int64_t c = 0; c < rows.classes; ++c) {
      if (c == target) continue;
      const float violation = static_cast<float>(settings.margin) - target_score + x[c];
      const float slope = violation <= 0 ? 0.0f : share * (settings.p == 1 ? 1.0f : 2 * violation);
      grad[c] = slope;
      target_grad -= slope;
    }
    grad[target] = target_grad;
    return;
  }
  if (settings.mode == Mode::kLogLikelihood) {
    for (int64_t c = 0; c < rows.classes; ++c) grad[c] = -factor * rows.Weighted(n, c);
    return;
  }
  const float largest = LargestOf(x, rows.classes);
  double sum = 0;
  double total = 0;
  for (int64_t c = 0; c < rows.classes; ++c) {
    grad[c] = std::exp(x[c] - largest);
    sum += grad[c];
    total += rows.Weighted(n, c);
  }
  const float scale = static_cast<float>(factor * total / sum);
  for (int64_t c = 0; c < rows.classes; ++c) grad[c] = scale * grad[c] - factor * rows.Weighted(n, c);
}

// The places of the inputs of a class_loss or its gradient.
struct ClassLossInputs {
  int64_t rows = 0;
  int64_t classes = 0;
  bool mixed = false;
  Region scores;
  Region target;

  ClassLossRows In(const RunContext& run, const ClassLossSettings& settings) const {
    return {settings, classes, run.At<const float>(scores), mixed ? nullptr : run.At<const int32_t>(target),
            mixed ? run.At<const float>(target) : nullptr};
  }
};

absl::StatusOr<ClassLossInputs> InputsOf(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  ClassLossInputs inputs;
  const Shape& shape = lowering.shape(node.inputs[0]);
  inputs.classes = shape[-1];
  inputs.rows = shape.elements() / inputs.classes;
  inputs.mixed = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (inputs.mixed) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(inputs.scores, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(inputs.target, lowering.GetPlain(node.inputs[1]));
  return inputs;
}

}  // namespace

absl::Status LowerClassLoss(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ClassLossInputs inputs, InputsOf(lowering, node));
  std::vector<Region> writes = lowering.DefineAllPlain(node);
  const Region losses = lowering.Scratch(inputs.rows * static_cast<int64_t>(sizeof(double)));
  const Region loss = writes[0];
  const Region loss_sum = writes[1];
  const Region weight = writes[2];
  writes.push_back(losses);
  lowering.Emit(
      {.name = "class_loss",
       .reads = {inputs.scores, inputs.target},
       .writes = std::move(writes),
       .run = [=, settings = static_cast<const ClassLossOp&>(*node.op).settings](const RunContext& run) {
         const ClassLossRows rows = inputs.In(run, settings);
         double* row_losses = run.At<double>(losses);
         run.team->For(inputs.rows, [&](int64_t begin, int64_t end) {
           for (int64_t n = begin; n < end; ++n) row_losses[n] = LossOf(rows, n);
         });
         double sum = 0;
         double divisor = 0;
         for (int64_t n = 0; n < inputs.rows; ++n) {
           sum += row_losses[n];
           divisor += rows.Divisor(n);
         }
         const double mean = divisor == 0 ? 0 : sum / divisor;
         *run.At<float>(loss) = static_cast<float>(settings.sum ? sum : mean);
         *run.At<float>(loss_sum) = static_cast<float>(sum);
         *run.At<float>(weight) = static_cast<float>(divisor);
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

absl::Status LowerClassLossGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ClassLossInputs inputs, InputsOf(lowering, node));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit(
      {.name = "class_loss_grad",
       .reads = {inputs.scores, inputs.target, grad_loss},
       .writes = {grad},
       .in_place = {{0, 0}},
       .run = [=, settings = static_cast<const ClassLossGradOp&>(*node.op).settings](const RunContext& run) {
         const ClassLossRows rows = inputs.In(run, settings);
         double divisor = settings.sum ? 1 : 0;
         for (int64_t n = 0; n < inputs.rows && !settings.sum; ++n) divisor += rows.Divisor(n);
         const double factor = divisor == 0 ? 0 : *run.At<const float>(grad_loss) / divisor;
         float* g = run.At<float>(grad);
         run.team->For(inputs.rows, [&](int64_t begin, int64_t end) {
           for (int64_t n = begin; n < end; ++n) {
             GradOf(rows, n, static_cast<float>(factor), g + n * inputs.classes);
           }
         });
         return absl::OkStatus();
       }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
