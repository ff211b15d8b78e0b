#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/backends/reference/kernel.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/muon.h"
#include "engine/graph/ops/nadam_factors.h"

namespace tandem::reference {
namespace {

// The inputs of an update.
struct Update {
  explicit Update(const KernelCall& call)
      : call(call),
        parameter(Numbers(call.inputs[0])),
        grad(Numbers(call.inputs[1])),
        learning_rate(Numbers(call.inputs[2])[0]),
        step(call.inputs[3]->data<int64_t>()[0]),
        t(static_cast<double>(step + 1)) {}

  absl::Span<double> state(int i) const { return Numbers(call.inputs[4 + i]); }

  const KernelCall& call;
  absl::Span<double> parameter;
  absl::Span<const double> grad;
  double learning_rate;
  int64_t step;
  double t;
};

// An element's bias-corrected moments after a step. The moments are kept in `m` and `v`.
struct Moments {
  Moments(double beta1, double beta2, double t, double g, double& m, double& v) {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    first = m / (1 - std::pow(beta1, t));
    second = v / (1 - std::pow(beta2, t));
  }
  double first;
  double second;
};

// Decays a parameter's element if its decay is decoupled from the gradient. Returns the element's gradient,
// with the decay if it is not.
template <typename Settings>
double Decay(const Settings& settings, const Update& update, size_t i) {
  double& p = update.parameter[i];
  if (!settings.decoupled) return update.grad[i] + settings.weight_decay * p;
  p -= update.learning_rate * settings.weight_decay * p;
  return update.grad[i];
}

double Norm(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

// A matrix, row by row.
struct Matrix {
  Matrix(std::vector<double> numbers, int64_t rows, int64_t columns)
      : numbers(std::move(numbers)), rows(rows), columns(columns) {}

  Matrix Transposed() const {
    Matrix result(std::vector<double>(numbers.size()), columns, rows);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) result.numbers[c * rows + r] = numbers[r * columns + c];
    }
    return result;
  }
  Matrix Times(const Matrix& other) const {
    Matrix result(std::vector<double>(rows * other.columns, 0), rows, other.columns);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < columns; ++k) {
        for (int64_t c = 0; c < other.columns; ++c) {
          result.numbers[r * other.columns + c] +=
              numbers[r * columns + k] * other.numbers[k * other.columns + c];
        }
      }
    }
    return result;
  }

  std::vector<double> numbers;
  int64_t rows;
  int64_t columns;
};

}  // namespace

absl::Status Adam(const KernelCall& call) {
  const AdamSettings& s = call.op<AdamOp>().settings;
  const Update u(call);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    double& p = u.parameter[i];
    const double g = Decay(s, u, i);
    const Moments moments(s.beta1, s.beta2, u.t, g, u.state(0)[i], u.state(1)[i]);
    double second = moments.second;
    if (s.amsgrad) {
      double& largest = u.state(2)[i];
      largest = std::max(largest, u.state(1)[i]);
      second = largest / (1 - std::pow(s.beta2, u.t));
    }
    p -= u.learning_rate * moments.first / (std::sqrt(second) + s.epsilon);
  }
  return absl::OkStatus();
}

absl::Status Nadam(const KernelCall& call) {
  const NadamSettings& s = call.op<NadamOp>().settings;
  const Update u(call);
  const NadamFactors factors = NadamFactorsAt(s.beta1, s.momentum_decay, u.t);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    double& p = u.parameter[i];
    const double g = Decay(s, u, i);
    double& m = u.state(0)[i];
    const Moments moments(s.beta1, s.beta2, u.t, g, m, u.state(1)[i]);
    const double ahead = factors.moment * m + factors.gradient * g;
    p -= u.learning_rate * ahead / (std::sqrt(moments.second) + s.epsilon);
  }
  return absl::OkStatus();
}

absl::Status Adamax(const KernelCall& call) {
  const AdamaxSettings& s = call.op<AdamaxOp>().settings;
  const Update u(call);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    const double g = u.grad[i] + s.weight_decay * u.parameter[i];
    double& m = u.state(0)[i];
    double& norm = u.state(1)[i];
    m = s.beta1 * m + (1 - s.beta1) * g;
    norm = std::max(s.beta2 * norm, std::abs(g) + s.epsilon);
    u.parameter[i] -= u.learning_rate * m / ((1 - std::pow(s.beta1, u.t)) * norm);
  }
  return absl::OkStatus();
}

absl::Status Lamb(const KernelCall& call) {
  const LambSettings& s = call.op<LambOp>().settings;
  const Update u(call);
  std::vector<double> r;
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    const Moments moments(s.beta1, s.beta2, u.t, u.grad[i], u.state(0)[i], u.state(1)[i]);
    r.push_back(moments.first / (std::sqrt(moments.second) + s.epsilon) + s.weight_decay * u.parameter[i]);
  }
  const double parameter_norm = Norm({u.parameter.begin(), u.parameter.end()});
  const double r_norm = Norm(r);
  const double trust = parameter_norm == 0 || r_norm == 0 ? 1 : parameter_norm / r_norm;
  for (size_t i = 0; i < u.parameter.size(); ++i) u.parameter[i] -= u.learning_rate * trust * r[i];
  return absl::OkStatus();
}

absl::Status Adagrad(const KernelCall& call) {
  const AdagradSettings& s = call.op<AdagradOp>().settings;
  const Update u(call);
  const double rate = u.learning_rate / (1 + (u.t - 1) * s.lr_decay);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    const double g = u.grad[i] + s.weight_decay * u.parameter[i];
    double& sum = u.state(0)[i];
    if (u.step == 0) sum = s.initial_accumulator;
    sum += g * g;
    u.parameter[i] -= rate * g / (std::sqrt(sum) + s.epsilon);
  }
  return absl::OkStatus();
}

absl::Status Adadelta(const KernelCall& call) {
  const AdadeltaSettings& s = call.op<AdadeltaOp>().settings;
  const Update u(call);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    const double g = u.grad[i] + s.weight_decay * u.parameter[i];
    double& square = u.state(0)[i];
    double& square_step = u.state(1)[i];
    square = s.rho * square + (1 - s.rho) * g * g;
    const double d = std::sqrt(square_step + s.epsilon) / std::sqrt(square + s.epsilon) * g;
    square_step = s.rho * square_step + (1 - s.rho) * d * d;
    u.parameter[i] -= u.learning_rate * d;
  }
  return absl::OkStatus();
}

absl::Status Rmsprop(const KernelCall& call) {
  const RmspropSettings& s = call.op<RmspropOp>().settings;
  const Update u(call);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    const double g = u.grad[i] + s.weight_decay * u.parameter[i];
    double& square = u.state(0)[i];
    square = s.alpha * square + (1 - s.alpha) * g * g;
    double variance = square;
    if (s.centered) {
      double& mean = u.state(1)[i];
      mean = s.alpha * mean + (1 - s.alpha) * g;
      // It is at least 0 except for rounding.
      variance = std::max(0.0, square - mean * mean);
    }
    double d = g / (std::sqrt(variance) + s.epsilon);
    if (s.momentum != 0) {
      double& buffer = u.state(s.centered ? 2 : 1)[i];
      d = buffer = s.momentum * buffer + d;
    }
    u.parameter[i] -= u.learning_rate * d;
  }
  return absl::OkStatus();
}

absl::Status Lion(const KernelCall& call) {
  const LionSettings& s = call.op<LionOp>().settings;
  const Update u(call);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    double& m = u.state(0)[i];
    const double mix = s.beta1 * m + (1 - s.beta1) * u.grad[i];
    const double sign = mix > 0 ? 1 : mix < 0 ? -1 : mix;
    u.parameter[i] -= u.learning_rate * (sign + s.weight_decay * u.parameter[i]);
    m = s.beta2 * m + (1 - s.beta2) * u.grad[i];
  }
  return absl::OkStatus();
}

absl::Status ClipGradients(const KernelCall& call) {
  const auto& op = call.op<ClipGradientsOp>();
  double factor = 1;
  if (op.mode == ClipGradientsOp::Mode::kByNorm) {
    double sum = 0;
    for (Tensor* input : call.inputs) {
      for (const double g : Numbers(input)) sum += g * g;
    }
    const double share = op.limit / (std::sqrt(sum) + ClipGradientsOp::kNormEpsilon);
    if (!(share >= 1)) factor = share;
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const absl::Span<const double> grad = Numbers(call.inputs[i]);
    const absl::Span<double> clipped = Numbers(call.outputs[i]);
    for (size_t j = 0; j < grad.size(); ++j) {
      const double g = grad[j];
      if (op.mode == ClipGradientsOp::Mode::kByNorm) {
        clipped[j] = factor * g;
      } else {
        clipped[j] = g > op.limit ? op.limit : g < -op.limit ? -op.limit : g;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Muon(const KernelCall& call) {
  const auto& op = call.op<MuonOp>();
  const MuonSettings& s = op.settings;
  const Update u(call);
  const int64_t rows = call.inputs[0]->shape()[0];
  const int64_t columns = call.inputs[0]->shape()[1];
  std::vector<double> update;
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    double& m = u.state(0)[i];
    m = s.momentum * m + (1 - s.momentum) * u.grad[i];
    update.push_back(s.nesterov ? (1 - s.momentum) * u.grad[i] + s.momentum * m : m);
  }
  Matrix x(std::move(update), rows, columns);
  if (rows > columns) x = x.Transposed();
  const double norm = std::max(Norm(x.numbers), s.epsilon);
  for (double& number : x.numbers) number /= norm;
  const auto [a, b, c] = s.coefficients;
  for (int step = 0; step < s.steps; ++step) {
    const Matrix gram = x.Times(x.Transposed());
    Matrix mixed = gram.Times(gram);
    for (size_t i = 0; i < mixed.numbers.size(); ++i) {
      mixed.numbers[i] = b * gram.numbers[i] + c * mixed.numbers[i];
    }
    const Matrix change = mixed.Times(x);
    for (size_t i = 0; i < x.numbers.size(); ++i) x.numbers[i] = a * x.numbers[i] + change.numbers[i];
  }
  if (rows > columns) x = x.Transposed();
  const double rate = u.learning_rate * op.Scale(rows, columns);
  for (size_t i = 0; i < u.parameter.size(); ++i) {
    u.parameter[i] -= u.learning_rate * s.weight_decay * u.parameter[i];
    u.parameter[i] -= rate * x.numbers[i];
  }
  return absl::OkStatus();
}

}  // namespace tandem::reference
