#include "engine/graph/ops/value_loss.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "engine/backends/cpu/losses.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/cosine_embedding.h"

namespace tandem::cpu {
namespace {

using Mode = ValueLossSettings::Mode;

// The elements of a piece of a sum, for any number of threads.
constexpr int64_t kPiece = 4096;

// Computes an element's loss and slope. `w` is its positive weight.
struct Element {
  float loss;
  float slope;
};

// Returns log(1 + exp(x)), without overflow.
float Softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

Element ElementOf(Mode mode, float width, float w, float x, float y) {
  const float difference = x - y;
  const float d = std::abs(difference);
  const float sign = difference > 0 ? 1.0f : (difference < 0 ? -1.0f : 0.0f);
  switch (mode) {
    case Mode::kSquared:
      return {d * d, 2 * difference};
    case Mode::kAbsolute:
      return {d, sign};
    case Mode::kHuber:
      return d < width ? Element{d * d / 2, difference} : Element{width * (d - width / 2), width * sign};
    case Mode::kSmoothL1:
      return d < width ? Element{d * d / (2 * width), difference / width} : Element{d - width / 2, sign};
    case Mode::kLogistic: {
      const float sigmoid = 1 / (1 + std::exp(-x));
      const float rest = 1 / (1 + std::exp(x));
      return {w * y * Softplus(-x) + (1 - y) * Softplus(x), (1 - y) * sigmoid - w * y * rest};
    }
    case Mode::kKl:
      return {y == 0 ? 0.0f : y * (std::log(y) - x), -y};
    case Mode::kKlOfLogs:
      return {std::exp(y) * (y - x), -std::exp(y)};
  }
  return {0, 0};
}

// The data of the elements in a run.
struct Elements {
  const ValueLossSettings& settings;
  const float* x;
  const float* numbers;   // Null if there are labels.
  const int32_t* labels;  // Null if there are numbers.

  float Weight(int64_t i) const {
    const std::vector<double>& weights = settings.weights;
    return weights.empty() ? 1.0f : static_cast<float>(weights[i % weights.size()]);
  }
  Element At(int64_t i) const {
    const std::vector<double>& positive = settings.positive_weights;
    const float w = positive.empty() ? 1.0f : static_cast<float>(positive[i % positive.size()]);
    const float y = labels == nullptr ? numbers[i] : static_cast<float>(labels[i]);
    return ElementOf(settings.mode, static_cast<float>(settings.width), w, x[i], y);
  }
};

// The places of the inputs of a value_loss or its gradient.
struct ValueLossInputs {
  int64_t elements = 0;
  double divisor = 1;
  bool labels = false;
  Region x;
  Region target;

  Elements In(const RunContext& run, const ValueLossSettings& settings) const {
    return {settings, run.At<const float>(x), labels ? nullptr : run.At<const float>(target),
            labels ? run.At<const int32_t>(target) : nullptr};
  }
};

absl::StatusOr<ValueLossInputs> InputsOf(Lowering& lowering, const Node& node,
                                         const ValueLossSettings& settings) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  ValueLossInputs inputs;
  const Shape& shape = lowering.shape(node.inputs[0]);
  inputs.elements = shape.elements();
  inputs.divisor = settings.Divisor(shape);
  inputs.labels = !IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (!inputs.labels) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(inputs.x, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(inputs.target, lowering.GetPlain(node.inputs[1]));
  return inputs;
}

// The places of the vectors of a cosine_embedding or its gradient.
struct CosineInputs {
  CosineVectors vectors;
  Region first;
  Region second;  // The targets, for pairs.

  // Returns vector n of the second kind.
  const float* Second(const RunContext& run, int64_t n) const {
    const float* base = run.At<const float>(vectors.pairs ? first : second);
    return base + vectors.second_offset + n * vectors.second_stride;
  }
  const float* First(const RunContext& run, int64_t n) const {
    return run.At<const float>(first) + n * vectors.first_stride;
  }
  bool Alike(const RunContext& run, int64_t n) const {
    return !vectors.pairs || run.At<const int32_t>(second)[n] > 0;
  }
};

absl::StatusOr<CosineInputs> CosineInputsOf(Lowering& lowering, const Node& node) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const bool pairs = !IsFloatingPoint(lowering.value(node.inputs[1]).dtype);
  if (!pairs) TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[1]));
  TANDEM_ASSIGN_OR_RETURN(const Region first, lowering.GetPlain(node.inputs[0]));
  TANDEM_ASSIGN_OR_RETURN(const Region second, lowering.GetPlain(node.inputs[1]));
  return CosineInputs{CosineVectors(lowering.shape(node.inputs[0]), pairs), first, second};
}

// The angle between two vectors.
struct Cosine {
  Cosine(const float* a, const float* b, int64_t size) {
    double product = 0;
    for (int64_t i = 0; i < size; ++i) {
      product += static_cast<double>(a[i]) * b[i];
      a_square += static_cast<double>(a[i]) * a[i];
      b_square += static_cast<double>(b[i]) * b[i];
    }
    a_square += CosineEmbeddingOp::kEpsilon;
    b_square += CosineEmbeddingOp::kEpsilon;
    length = std::sqrt(a_square * b_square);
    cosine = product / length;
  }

  double a_square = 0;
  double b_square = 0;
  double length = 0;
  double cosine = 0;
};

}  // namespace

absl::Status LowerValueLoss(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const ValueLossOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const ValueLossInputs inputs, InputsOf(lowering, node, op.settings));
  const Region loss = lowering.DefinePlain(node.outputs[0]);
  const int64_t pieces = (inputs.elements + kPiece - 1) / kPiece;
  const Region sums = lowering.Scratch(pieces * static_cast<int64_t>(sizeof(double)));
  lowering.Emit({.name = "value_loss",
                 .reads = {inputs.x, inputs.target},
                 .writes = {loss, sums},
                 .run = [=, settings = op.settings](const RunContext& run) {
                   const Elements elements = inputs.In(run, settings);
                   double* piece_sums = run.At<double>(sums);
                   run.team->For(pieces, [&](int64_t begin, int64_t end) {
                     for (int64_t piece = begin; piece < end; ++piece) {
                       double sum = 0;
                       const int64_t last = std::min(inputs.elements, (piece + 1) * kPiece);
                       for (int64_t i = piece * kPiece; i < last; ++i) {
                         sum += static_cast<double>(elements.Weight(i)) * elements.At(i).loss;
                       }
                       piece_sums[piece] = sum;
                     }
                   });
                   double sum = 0;
                   for (int64_t piece = 0; piece < pieces; ++piece) sum += piece_sums[piece];
                   *run.At<float>(loss) = static_cast<float>(sum / inputs.divisor);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerValueLossGrad(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const ValueLossGradOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const ValueLossInputs inputs, InputsOf(lowering, node, op.settings));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const Region grad = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "value_loss_grad",
                 .reads = {inputs.x, inputs.target, grad_loss},
                 .writes = {grad},
                 .in_place = {{0, 0}},
                 .run = [=, settings = op.settings](const RunContext& run) {
                   const Elements elements = inputs.In(run, settings);
                   const auto factor = static_cast<float>(*run.At<const float>(grad_loss) / inputs.divisor);
                   float* g = run.At<float>(grad);
                   run.team->For(inputs.elements, [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       g[i] = factor * elements.Weight(i) * elements.At(i).slope;
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCosineEmbedding(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const CosineInputs inputs, CosineInputsOf(lowering, node));
  const auto& op = static_cast<const CosineEmbeddingOp&>(*node.op);
  const Region loss = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "cosine_embedding",
                 .reads = {inputs.first, inputs.second},
                 .writes = {loss},
                 .run = [inputs, loss, margin = op.margin, sums = op.sum](const RunContext& run) {
                   const CosineVectors& vectors = inputs.vectors;
                   double sum = 0;
                   for (int64_t n = 0; n < vectors.count; ++n) {
                     const Cosine pair(inputs.First(run, n), inputs.Second(run, n), vectors.size);
                     const double beyond = pair.cosine - margin;
                     sum += inputs.Alike(run, n) ? 1 - pair.cosine : (beyond < 0 ? 0 : beyond);
                   }
                   const double divisor = sums ? 1 : static_cast<double>(vectors.count);
                   *run.At<float>(loss) = static_cast<float>(sum / divisor);
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

absl::Status LowerCosineEmbeddingGrad(Lowering& lowering, const Node& node) {
  TANDEM_ASSIGN_OR_RETURN(const CosineInputs inputs, CosineInputsOf(lowering, node));
  TANDEM_ASSIGN_OR_RETURN(const Region grad_loss, lowering.GetPlain(node.inputs[2]));
  const auto& op = static_cast<const CosineEmbeddingGradOp&>(*node.op);
  const Region grad = lowering.DefinePlain(node.outputs[0]);
  lowering.Emit({.name = "cosine_embedding_grad",
                 .reads = {inputs.first, inputs.second, grad_loss},
                 .writes = {grad},
                 .run = [inputs, grad_loss, grad, margin = op.margin, sums = op.sum](const RunContext& run) {
                   const CosineVectors& vectors = inputs.vectors;
                   const double divisor = sums ? 1 : static_cast<double>(vectors.count);
                   const double factor = *run.At<const float>(grad_loss) / divisor;
                   float* g = run.At<float>(grad);
                   run.team->For(vectors.count, [&](int64_t begin, int64_t end) {
                     for (int64_t n = begin; n < end; ++n) {
                       const float* a = inputs.First(run, n);
                       const float* b = inputs.Second(run, n);
                       const Cosine pair(a, b, vectors.size);
                       const double slope =
                           factor * (inputs.Alike(run, n) ? -1 : (pair.cosine > margin ? 1 : 0));
                       float* grad_a = g + n * vectors.first_stride;
                       for (int64_t i = 0; i < vectors.size; ++i) {
                         const double by_a = b[i] / pair.length - pair.cosine * a[i] / pair.a_square;
                         grad_a[i] = static_cast<float>(slope * by_a);
                         if (!vectors.pairs) continue;
                         const double by_b = a[i] / pair.length - pair.cosine * b[i] / pair.b_square;
                         grad_a[vectors.second_offset + i] = static_cast<float>(slope * by_b);
                       }
                     }
                   });
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
