#include "engine/graph/ops/value_loss.h"

#include <memory>
#include <utility>

#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/kernels/value_loss.h"
#include "engine/backends/cuda/offered.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/cosine_embedding.h"

namespace tandem::cuda {
namespace {

ValueLoss::Mode ModeOf(ValueLossSettings::Mode mode) {
  switch (mode) {
    case ValueLossSettings::Mode::kSquared:
      return ValueLoss::Mode::kSquared;
    case ValueLossSettings::Mode::kAbsolute:
      return ValueLoss::Mode::kAbsolute;
    case ValueLossSettings::Mode::kHuber:
      return ValueLoss::Mode::kHuber;
    case ValueLossSettings::Mode::kSmoothL1:
      return ValueLoss::Mode::kSmoothL1;
    case ValueLossSettings::Mode::kLogistic:
      return ValueLoss::Mode::kLogistic;
    case ValueLossSettings::Mode::kKl:
      return ValueLoss::Mode::kKl;
    case ValueLossSettings::Mode::kKlOfLogs:
      break;
  }
  return ValueLoss::Mode::kKlOfLogs;
}

// The first input in the type in which it was computed, but row-major, and the second.
struct Operands {
  DType type = DType::kFloat32;
  Region first;
  Region second;
  bool second_is_numbers = false;
};

absl::StatusOr<Operands> OperandsOf(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.HomeAsMade(node.inputs[0]));
  Operands operands;
  operands.type = home.layout.dtype();
  operands.second_is_numbers = IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (operands.second_is_numbers) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(
      operands.first,
      lowering.Get(node.inputs[0], Layout::Plain(operands.type, lowering.shape(node.inputs[0]))));
  TANDEM_ASSIGN_OR_RETURN(operands.second, lowering.GetPlain(node.inputs[1]));
  return operands;
}

// Defines the gradient of a loss.
Region DefineGrad(Lowering& lowering, const Node& node, const Operands& operands) {
  return lowering.Define(node.outputs[0], Layout::Plain(operands.type, lowering.shape(node.inputs[0])));
}

// The data of a value_loss or its gradient.
struct ValueInputs {
  Operands operands;
  ValueLoss work;  // Without addresses.
  std::shared_ptr<DeviceTable<float>> positive_weights;
  std::shared_ptr<DeviceTable<float>> weights;

  ValueLoss At(const RunContext& run) const {
    ValueLoss result = work;
    result.x = run.At(operands.first);
    result.labels = operands.second_is_numbers ? nullptr : run.At<const int32_t>(operands.second);
    result.numbers = operands.second_is_numbers ? run.At<const float>(operands.second) : nullptr;
    result.positive_weights = {positive_weights->data(), positive_weights->size()};
    result.weights = {weights->data(), weights->size()};
    return result;
  }
  absl::Status Fill(const RunContext& run) const {
    TANDEM_RETURN_IF_ERROR(positive_weights->Upload(run.stream));
    return weights->Upload(run.stream);
  }
};

absl::StatusOr<ValueInputs> ValueInputsOf(Lowering& lowering, const Node& node,
                                          const ValueLossSettings& settings) {
  ValueInputs inputs;
  TANDEM_ASSIGN_OR_RETURN(inputs.operands, OperandsOf(lowering, node));
  const Shape& shape = lowering.shape(node.inputs[0]);
  inputs.work.mode = ModeOf(settings.mode);
  inputs.work.width = static_cast<float>(settings.width);
  inputs.work.divisor = settings.Divisor(shape);
  inputs.work.elements = shape.elements();
  inputs.work.type = inputs.operands.type;
  inputs.positive_weights = FloatTable(settings.positive_weights);
  inputs.weights = FloatTable(settings.weights);
  return inputs;
}

absl::Status LowerValueLoss(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const ValueInputs inputs,
                          ValueInputsOf(lowering, node, static_cast<const ValueLossOp&>(*node.op).settings));
  const Region loss = lowering.DefinePlain(node.outputs[0]);
  const Region sums = lowering.Scratch(kRowSumBytes);
  lowering.Emit({.name = "value_loss",
                 .reads = {inputs.operands.first, inputs.operands.second},
                 .writes = {loss, sums},
                 .run =
                     [=](const RunContext& run) {
                       RunValueLoss(inputs.At(run), run.At<float>(loss), run.At(sums), run.stream);
                       return absl::OkStatus();
                     },
                 .bind = [=](const RunContext& run) { return inputs.Fill(run); }});
  return absl::OkStatus();
}

absl::Status LowerValueLossGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(
      const ValueInputs inputs,
      ValueInputsOf(lowering, node, static_cast<const ValueLossGradOp&>(*node.op).settings));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad = DefineGrad(lowering, node, inputs.operands);
  lowering.Emit({.name = "value_loss_grad",
                 .reads = {inputs.operands.first, inputs.operands.second, grad_loss},
                 .writes = {grad},
                 .in_place = {{0, 0}},
                 .run =
                     [=](const RunContext& run) {
                       RunValueLossGrad(inputs.At(run), run.At<const float>(grad_loss), run.At(grad),
                                        run.stream);
                       return absl::OkStatus();
                     },
                 .bind = [=](const RunContext& run) { return inputs.Fill(run); }});
  return absl::OkStatus();
}

// The data of a cosine_embedding or its gradient.
struct CosineInputs {
  Operands operands;
  CosineLoss work;  // Without addresses.

  CosineLoss At(const RunContext& run) const {
    CosineLoss result = work;
    result.first = run.At(operands.first);
    result.second = operands.second_is_numbers ? run.At<const float>(operands.second) : nullptr;
    result.alike = operands.second_is_numbers ? nullptr : run.At<const int32_t>(operands.second);
    return result;
  }
};

template <typename Op>
absl::StatusOr<CosineInputs> CosineInputsOf(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const Op&>(*node.op);
  CosineInputs inputs;
  TANDEM_ASSIGN_OR_RETURN(inputs.operands, OperandsOf(lowering, node));
  const CosineVectors vectors(lowering.shape(node.inputs[0]), !inputs.operands.second_is_numbers);
  inputs.work.count = vectors.count;
  inputs.work.size = vectors.size;
  inputs.work.first_stride = vectors.first_stride;
  inputs.work.second_stride = vectors.second_stride;
  inputs.work.second_offset = vectors.second_offset;
  inputs.work.epsilon = CosineEmbeddingOp::kEpsilon;
  inputs.work.margin = op.margin;
  inputs.work.sum = op.sum;
  inputs.work.type = inputs.operands.type;
  return inputs;
}

absl::Status LowerCosineEmbedding(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const CosineInputs inputs, CosineInputsOf<CosineEmbeddingOp>(lowering, node));
  const Region loss = lowering.DefinePlain(node.outputs[0]);
  const Region sums = lowering.Scratch(kRowSumBytes);
  lowering.Emit({.name = "cosine_embedding",
                 .reads = {inputs.operands.first, inputs.operands.second},
                 .writes = {loss, sums},
                 .run = [=](const RunContext& run) {
                   RunCosineLoss(inputs.At(run), run.At<float>(loss), run.At(sums), run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCosineEmbeddingGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const CosineInputs inputs, CosineInputsOf<CosineEmbeddingGradOp>(lowering, node));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad = DefineGrad(lowering, node, inputs.operands);
  lowering.Emit({.name = "cosine_embedding_grad",
                 .reads = {inputs.operands.first, inputs.operands.second, grad_loss},
                 .writes = {grad},
                 .run = [=](const RunContext& run) {
                   RunCosineLossGrad(inputs.At(run), run.At<const float>(grad_loss), run.At(grad),
                                     run.stream);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace

absl::Span<const Offered> ValueLossOps() {
  static constexpr Offered kOps[] = {
      {"cosine_embedding", LowerCosineEmbedding},
      {"cosine_embedding_grad", LowerCosineEmbeddingGrad},
      {"value_loss", LowerValueLoss},
      {"value_loss_grad", LowerValueLossGrad},
  };
  return kOps;
}

}  // namespace tandem::cuda
