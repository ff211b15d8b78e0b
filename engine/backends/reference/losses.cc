#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/reference/kernel.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/class_loss.h"
#include "engine/graph/ops/cosine_embedding.h"
#include "engine/graph/ops/value_loss.h"

namespace tandem::reference {
namespace {

using ClassMode = ClassLossSettings::Mode;
using ValueMode = ValueLossSettings::Mode;

// A row of a class_loss and its divisor. Both are 0 for an ignored row.
struct ClassRow {
  absl::Span<const double> x;
  int64_t target = -1;  // Of a single class.
  bool ignored = false;
  std::vector<double> weighted;  // a[c] of the op's header. Empty for kHinge.
  double divisor = 0;
};

// Returns all rows. INVALID_ARGUMENT for a target that is no class.
absl::StatusOr<std::vector<ClassRow>> ClassRows(const KernelCall& call, const ClassLossSettings& settings) {
  const int64_t classes = call.inputs[0]->shape()[-1];
  const int64_t count = call.inputs[0]->elements() / classes;
  const bool mixed = IsFloatingPoint(call.inputs[1]->dtype());
  std::vector<ClassRow> rows(count);
  for (int64_t n = 0; n < count; ++n) {
    ClassRow& row = rows[n];
    row.x = Numbers(call.inputs[0]).subspan(n * classes, classes);
    if (!mixed) {
      row.target = call.inputs[1]->data<int32_t>()[n];
      row.ignored = settings.ignore_index == row.target;
      if (row.ignored) continue;
      if (row.target < 0 || row.target >= classes) {
        return absl::InvalidArgumentError(
            absl::StrCat("label ", row.target, " is not one of ", classes, " classes"));
      }
    }
    row.divisor = mixed ? 1 : settings.DivisorOf(row.target);
    if (settings.mode == ClassMode::kHinge) continue;
    const double e = settings.label_smoothing;
    for (int64_t c = 0; c < classes; ++c) {
      const double share = mixed ? Numbers(call.inputs[1])[n * classes + c] : (c == row.target ? 1 : 0);
      row.weighted.push_back(settings.WeightOf(c) * ((1 - e) * share + e / static_cast<double>(classes)));
    }
  }
  return rows;
}

// Returns log softmax(x).
std::vector<double> LogSoftmax(absl::Span<const double> x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double number : x) sum += std::exp(number - largest);
  std::vector<double> logs;
  for (const double number : x) logs.push_back(number - largest - std::log(sum));
  return logs;
}

// Returns the hinge loss of class `c`, other than the target: max(0, margin - x[target] + x[c]).
double Violation(const ClassLossSettings& settings, const ClassRow& row, size_t c) {
  const double violation = settings.margin - row.x[row.target] + row.x[c];
  return violation < 0 ? 0 : violation;  // NaN stays NaN.
}

double LossOf(const ClassLossSettings& settings, const ClassRow& row) {
  if (row.ignored) return 0;
  double loss = 0;
  if (settings.mode == ClassMode::kHinge) {
    for (size_t c = 0; c < row.x.size(); ++c) {
      if (static_cast<int64_t>(c) != row.target) loss += std::pow(Violation(settings, row, c), settings.p);
    }
    return settings.WeightOf(row.target) * loss / static_cast<double>(row.x.size());
  }
  const std::vector<double> logs = settings.mode == ClassMode::kCrossEntropy
                                       ? LogSoftmax(row.x)
                                       : std::vector<double>(row.x.begin(), row.x.end());
  for (size_t c = 0; c < logs.size(); ++c) {
    // A class with weight 0 does not count, even if its logarithm is infinite.
    if (row.weighted[c] != 0) loss -= row.weighted[c] * logs[c];
  }
  return loss;
}

// Returns the gradient of a row's loss by each of its numbers.
std::vector<double> GradOf(const ClassLossSettings& settings, const ClassRow& row) {
  std::vector<double> grad(row.x.size(), 0);
  if (row.ignored) return grad;
  if (settings.mode == ClassMode::kHinge) {
    const double factor = settings.WeightOf(row.target) / static_cast<double>(row.x.size());
    for (size_t c = 0; c < row.x.size(); ++c) {
      if (static_cast<int64_t>(c) == row.target) continue;
      const double violation = Violation(settings, row, c);
      const double slope = violation == 0 ? 0 : factor * (settings.p == 1 ? 1 : 2 * violation);
      grad[c] += slope;
      grad[row.target] -= slope;
    }
    return grad;
  }
  double total = 0;
  for (const double weight : row.weighted) total += weight;
  const bool softmax = settings.mode == ClassMode::kCrossEntropy;
  const std::vector<double> logs = softmax ? LogSoftmax(row.x) : std::vector<double>();
  for (size_t c = 0; c < grad.size(); ++c) {
    grad[c] = (softmax ? std::exp(logs[c]) * total : 0) - row.weighted[c];
  }
  return grad;
}

// Returns the weight of element `i`, with repeating weights.
double Repeated(const std::vector<double>& weights, size_t i) {
  return weights.empty() ? 1 : weights[i % weights.size()];
}

// A number and its target.
struct Element {
  double loss;
  double slope;
};

// Returns log(1 + exp(x)), without overflow.
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

Element ValueElement(const ValueLossSettings& settings, double x, double y, size_t i) {
  const double difference = x - y;
  const double d = std::abs(difference);
  const double sign = difference > 0 ? 1 : (difference < 0 ? -1 : 0);
  const double width = settings.width;
  switch (settings.mode) {
    case ValueMode::kSquared:
      return {d * d, 2 * difference};
    case ValueMode::kAbsolute:
      return {d, sign};
    case ValueMode::kHuber:
      return d < width ? Element{d * d / 2, difference} : Element{width * (d - width / 2), width * sign};
    case ValueMode::kSmoothL1:
      return d < width ? Element{d * d / (2 * width), difference / width} : Element{d - width / 2, sign};
    case ValueMode::kLogistic: {
      const double w = Repeated(settings.positive_weights, i);
      const double sigmoid = std::exp(-Softplus(-x));
      return {w * y * Softplus(-x) + (1 - y) * Softplus(x), (1 - y) * sigmoid - w * y * (1 - sigmoid)};
    }
    case ValueMode::kKl:
      return {y == 0 ? 0 : y * (std::log(y) - x), -y};
    case ValueMode::kKlOfLogs:
      return {std::exp(y) * (y - x), -std::exp(y)};
  }
  return {0, 0};
}

double TargetAt(const KernelCall& call, size_t i) {
  return IsFloatingPoint(call.inputs[1]->dtype()) ? Numbers(call.inputs[1])[i]
                                                  : call.inputs[1]->data<int32_t>()[i];
}

// Pair n of vectors of a cosine embedding, with derived numbers.
struct CosinePair {
  CosinePair(const KernelCall& call, const CosineVectors& vectors, int64_t n)
      : a(Numbers(call.inputs[0]).subspan(n * vectors.first_stride, vectors.size)),
        b(Numbers(call.inputs[vectors.pairs ? 0 : 1])
              .subspan(vectors.second_offset + n * vectors.second_stride, vectors.size)),
        alike(!vectors.pairs || call.inputs[1]->data<int32_t>()[n] > 0) {
    double product = 0;
    for (int64_t i = 0; i < vectors.size; ++i) {
      product += a[i] * b[i];
      a_square += a[i] * a[i];
      b_square += b[i] * b[i];
    }
    a_square += CosineEmbeddingOp::kEpsilon;
    b_square += CosineEmbeddingOp::kEpsilon;
    length = std::sqrt(a_square * b_square);
    cosine = product / length;
  }

  absl::Span<const double> a;
  absl::Span<const double> b;
  bool alike;
  double a_square = 0;
  double b_square = 0;
  double length = 0;
  double cosine = 0;
};

}  // namespace

absl::Status ClassLoss(const KernelCall& call) {
  const ClassLossSettings& settings = call.op<ClassLossOp>().settings;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ClassRow> rows, ClassRows(call, settings));
  double sum = 0;
  double weight = 0;
  for (const ClassRow& row : rows) {
    sum += LossOf(settings, row);
    weight += row.divisor;
  }
  Numbers(call.outputs[0])[0] = settings.sum ? sum : (weight == 0 ? 0 : sum / weight);
  Numbers(call.outputs[1])[0] = sum;
  Numbers(call.outputs[2])[0] = weight;
  return absl::OkStatus();
}

absl::Status ClassLossGrad(const KernelCall& call) {
  const ClassLossSettings& settings = call.op<ClassLossGradOp>().settings;
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ClassRow> rows, ClassRows(call, settings));
  double weight = 0;
  for (const ClassRow& row : rows) weight += row.divisor;
  const double factor = settings.sum ? 1 : (weight == 0 ? 0 : 1 / weight);
  const double grad_loss = Numbers(call.inputs[2])[0];
  auto out = Numbers(call.outputs[0]).begin();
  for (const ClassRow& row : rows) {
    for (const double grad : GradOf(settings, row)) *out++ = grad_loss * factor * grad;
  }
  return absl::OkStatus();
}

absl::Status ValueLoss(const KernelCall& call) {
  const ValueLossSettings& settings = call.op<ValueLossOp>().settings;
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sum += Repeated(settings.weights, i) * ValueElement(settings, x[i], TargetAt(call, i), i).loss;
  }
  Numbers(call.outputs[0])[0] = sum / settings.Divisor(call.inputs[0]->shape());
  return absl::OkStatus();
}

absl::Status ValueLossGrad(const KernelCall& call) {
  const ValueLossSettings& settings = call.op<ValueLossGradOp>().settings;
  const absl::Span<const double> x = Numbers(call.inputs[0]);
  const double factor = Numbers(call.inputs[2])[0] / settings.Divisor(call.inputs[0]->shape());
  for (size_t i = 0; i < x.size(); ++i) {
    const double slope = ValueElement(settings, x[i], TargetAt(call, i), i).slope;
    Numbers(call.outputs[0])[i] = factor * Repeated(settings.weights, i) * slope;
  }
  return absl::OkStatus();
}

absl::Status CosineEmbedding(const KernelCall& call) {
  const auto& op = call.op<CosineEmbeddingOp>();
  const CosineVectors vectors(call.inputs[0]->shape(), !IsFloatingPoint(call.inputs[1]->dtype()));
  double sum = 0;
  for (int64_t n = 0; n < vectors.count; ++n) {
    const CosinePair pair(call, vectors, n);
    const double beyond = pair.cosine - op.margin;
    sum += pair.alike ? 1 - pair.cosine : (beyond < 0 ? 0 : beyond);
  }
  Numbers(call.outputs[0])[0] = op.sum ? sum : sum / static_cast<double>(vectors.count);
  return absl::OkStatus();
}

absl::Status CosineEmbeddingGrad(const KernelCall& call) {
  const auto& op = call.op<CosineEmbeddingGradOp>();
  const CosineVectors vectors(call.inputs[0]->shape(), !IsFloatingPoint(call.inputs[1]->dtype()));
  const double grad_loss = Numbers(call.inputs[2])[0] / (op.sum ? 1 : static_cast<double>(vectors.count));
  const absl::Span<double> grad = Numbers(call.outputs[0]);
  for (int64_t n = 0; n < vectors.count; ++n) {
    const CosinePair pair(call, vectors, n);
    const double slope = pair.alike ? -1 : (pair.cosine > op.margin ? 1 : 0);
    for (int64_t i = 0; i < vectors.size; ++i) {
      const double by_a = pair.b[i] / pair.length - pair.cosine * pair.a[i] / pair.a_square;
      grad[n * vectors.first_stride + i] = grad_loss * slope * by_a;
      if (!vectors.pairs) continue;
      const double by_b = pair.a[i] / pair.length - pair.cosine * pair.b[i] / pair.b_square;
      grad[vectors.second_offset + n * vectors.second_stride + i] = grad_loss * slope * by_b;
    }
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
