#include "engine/graph/ops/class_loss.h"

#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/kernels/class_loss.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"

namespace tandem::cuda {
namespace {

// No class.
constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

ClassLoss::Mode ModeOf(ClassLossSettings::Mode mode) {
  switch (mode) {
    case ClassLossSettings::Mode::kCrossEntropy:
      return ClassLoss::Mode::kCrossEntropy;
    case ClassLossSettings::Mode::kLogLikelihood:
      return ClassLoss::Mode::kLogLikelihood;
    case ClassLossSettings::Mode::kHinge:
      break;
  }
  return ClassLoss::Mode::kHinge;
}

// The inputs of a class_loss or its gradient.
struct Inputs {
  ClassLoss work;  // Without addresses.
  Region scores;
  Region target;
  bool mixed = false;
  std::shared_ptr<DeviceTable<float>> weights;

  ClassLoss At(const RunContext& run) const {
    ClassLoss result = work;
    result.scores = run.At(scores);
    result.labels = mixed ? nullptr : run.At<const int32_t>(target);
    result.shares = mixed ? run.At<const float>(target) : nullptr;
    result.weights = weights->data();
    return result;
  }
};

absl::StatusOr<Inputs> InputsOf(Lowering& lowering, const Node& node, const ClassLossSettings& settings) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const Shape& shape = lowering.shape(node.inputs[0]);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  Inputs inputs;
  inputs.work.mode = ModeOf(settings.mode);
  inputs.work.label_smoothing = settings.label_smoothing;
  inputs.work.ignored = settings.ignore_index.value_or(kNone);
  inputs.work.p = settings.p;
  inputs.work.margin = settings.margin;
  inputs.work.sum = settings.sum;
  inputs.work.classes = shape[-1];
  inputs.work.rows = shape.elements() / shape[-1];
  inputs.work.type = home.layout.dtype();
  inputs.mixed = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (inputs.mixed) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(inputs.scores,
                          lowering.Get(node.inputs[0], Layout::Plain(inputs.work.type, shape)));
  TANDEM_ASSIGN_OR_RETURN(inputs.target, lowering.GetPlain(node.inputs[1]));
  inputs.weights = FloatTable(settings.weights);
  return inputs;
}

absl::Status LowerClassLoss(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Inputs inputs,
                          InputsOf(lowering, node, static_cast<const ClassLossOp&>(*node.op).settings));
  std::vector<Region> writes = lowering.DefineAllPlain(node);
  writes.push_back(lowering.Scratch(kRowSumBytes));
  lowering.Emit({.name = "class_loss",
                 .reads = {inputs.scores, inputs.target},
                 .writes = writes,
                 .run =
                     [=](const RunContext& run) {
                       RunClassLoss(inputs.At(run), run.At<float>(writes[0]), run.At<float>(writes[1]),
                                    run.At<float>(writes[2]), run.At(writes[3]), run.stream);
                       return absl::OkStatus();
                     },
                 .bind = [=](const RunContext& run) { return inputs.weights->Upload(run.stream); }});
  return absl::OkStatus();
}

absl::Status LowerClassLossGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const Inputs inputs,
                          InputsOf(lowering, node, static_cast<const ClassLossGradOp&>(*node.op).settings));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad =
      lowering.Define(node.outputs[0], Layout::Plain(inputs.work.type, lowering.shape(node.inputs[0])));
  const Region factor = lowering.Scratch(sizeof(float));
  const Region sums = lowering.Scratch(kRowSumBytes);
  lowering.Emit({.name = "class_loss_grad",
                 .reads = {inputs.scores, inputs.target, grad_loss},
                 .writes = {grad, factor, sums},
                 .in_place = {{0, 0}},
                 .run =
                     [=](const RunContext& run) {
                       RunClassLossGrad(inputs.At(run), run.At<const float>(grad_loss), run.At(grad),
                                        run.At<float>(factor), run.At(sums), run.stream);
                       return absl::OkStatus();
                     },
                 .bind = [=](const RunContext& run) { return inputs.weights->Upload(run.stream); }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> ClassLossOps() {
  static constexpr Offered kOps[] = {
      {"class_loss", LowerClassLoss},
      {"class_loss_grad", LowerClassLossGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
