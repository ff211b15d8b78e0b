#include "engine/backends/cpu/optimizers.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/nadam_factors.h"
#include "engine/graph/ops/sgd.h"

namespace tandem::cpu {
namespace {

// The elements of a piece of a sum, for any number of threads.
constexpr int64_t kPiece = 16384;

int64_t Pieces(int64_t elements) { return (elements + kPiece - 1) / kPiece; }

// The data of an update in a run.
struct Update {
  const RunContext& run;
  int64_t elements;  // With padding, which is zero and stays zero.
  float* parameter;
  const float* grad;
  double rate;
  int64_t step;
  const std::vector<Region>& states;

  double t() const { return static_cast<double>(step + 1); }
  float* state(size_t i) const { return run.At<float>(states[i]); }
  template <typename Function>
  void For(const Function& function) const {
    run.team->For(elements, function);
  }
};

// Adds the step of an update. The states have the parameter's layout.
template <typename Take>
absl::Status LowerUpdate(Lowering& lowering, const Node& node, Take take) {
  TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[0]));
  const auto& op = static_cast<const UpdateOp&>(*node.op);
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  const Layout& layout = home.layout;
  const Region parameter = home.region;
  TANDEM_ASSIGN_OR_RETURN(const Region grad, lowering.Get(node.inputs[1], layout));
  TANDEM_ASSIGN_OR_RETURN(const Region rate, lowering.GetPlain(node.inputs[2]));
  TANDEM_ASSIGN_OR_RETURN(const Region step, lowering.GetPlain(node.inputs[3]));
  std::vector<Region> states;
  for (size_t i = 0; i < op.states().size(); ++i) {
    const ValueId id = node.inputs[4 + i];
    TANDEM_ASSIGN_OR_RETURN(states.emplace_back(), lowering.Get(id, layout));
    TANDEM_ASSIGN_OR_RETURN(const Place state_home, lowering.Home(id));
    if (!(state_home.layout == layout)) {
      return absl::InternalError("cpu: an optimizer's state lies in another layout than its parameter");
    }
  }
  std::vector<Region> reads = {parameter, grad, rate, step};
  std::vector<Region> writes = {parameter};
  reads.insert(reads.end(), states.begin(), states.end());
  writes.insert(writes.end(), states.begin(), states.end());
  const int64_t elements = layout.elements();
  lowering.Emit({.name = std::string(op.kind()),
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .run = [=](const RunContext& run) {
                   take(Update{run, elements, run.At<float>(parameter), run.At<const float>(grad),
                               *run.At<const double>(rate), *run.At<const int64_t>(step), states});
                   return absl::OkStatus();
                 }});
  for (const int i : op.MutatedInputs()) lowering.Changed(node.inputs[i]);
  return absl::OkStatus();
}

// Returns the coefficients of settings with two betas.
template <typename Settings>
AdamCoefficients Coefficients(const Settings& settings) {
  AdamCoefficients k;
  k.beta1 = static_cast<float>(settings.beta1);
  k.fresh1 = static_cast<float>(1 - settings.beta1);
  k.beta2 = static_cast<float>(settings.beta2);
  k.fresh2 = static_cast<float>(1 - settings.beta2);
  k.weight_decay = static_cast<float>(settings.weight_decay);
  k.keep = 1;
  return k;
}

template <typename Settings>
void Decouple(const Settings& settings, double rate, AdamCoefficients& k) {
  if (!settings.decoupled) return;
  k.weight_decay = 0;
  k.keep = static_cast<float>(1 - rate * settings.weight_decay);
}

// Returns 1 / sqrt(1 - beta2^t), the factor that turns sqrt(v) into sqrt(vhat).
float RootScale(double beta2, double t) { return static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, t))); }

}  // namespace

absl::Status LowerAdam(Lowering& lowering, const Node& node) {
  const AdamSettings s = static_cast<const AdamOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    AdamCoefficients k = Coefficients(s);
    Decouple(s, u.rate, k);
    k.epsilon = static_cast<float>(s.epsilon);
    k.moment_rate = static_cast<float>(u.rate / (1 - std::pow(s.beta1, u.t())));
    k.root_scale = RootScale(s.beta2, u.t());
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->adam(k, u.parameter, u.grad, u.state(0), u.state(1), s.amsgrad ? u.state(2) : nullptr,
                          begin, end);
    });
  });
}

absl::Status LowerNadam(Lowering& lowering, const Node& node) {
  const NadamSettings s = static_cast<const NadamOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    const NadamFactors factors = NadamFactorsAt(s.beta1, s.momentum_decay, u.t());
    AdamCoefficients k = Coefficients(s);
    Decouple(s, u.rate, k);
    k.epsilon = static_cast<float>(s.epsilon);
    k.moment_rate = static_cast<float>(u.rate * factors.moment);
    k.grad_rate = static_cast<float>(u.rate * factors.gradient);
    k.root_scale = RootScale(s.beta2, u.t());
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->adam(k, u.parameter, u.grad, u.state(0), u.state(1), nullptr, begin, end);
    });
  });
}

absl::Status LowerAdamax(Lowering& lowering, const Node& node) {
  const AdamaxSettings s = static_cast<const AdamaxOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    AdamCoefficients k = Coefficients(s);
    k.epsilon = static_cast<float>(s.epsilon);
    k.moment_rate = static_cast<float>(u.rate / (1 - std::pow(s.beta1, u.t())));
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->adamax(k, u.parameter, u.grad, u.state(0), u.state(1), begin, end);
    });
  });
}

absl::Status LowerLamb(Lowering& lowering, const Node& node) {
  const LambSettings s = static_cast<const LambOp&>(*node.op).settings;
  TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[0]));
  // Two sums for each piece. Allocated here, so that no step allocates.
  const auto squares = std::make_shared<std::vector<double>>(2 * Pieces(home.layout.elements()));
  return LowerUpdate(lowering, node, [s, squares](const Update& u) {
    AdamCoefficients k = Coefficients(s);
    k.epsilon = static_cast<float>(s.epsilon);
    k.moment_rate = static_cast<float>(1 / (1 - std::pow(s.beta1, u.t())));
    k.root_scale = RootScale(s.beta2, u.t());
    const int64_t pieces = Pieces(u.elements);
    u.run.team->For(pieces, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        u.run.kernels->lamb_moments(k, u.parameter, u.grad, u.state(0), u.state(1),
                                    squares->data() + 2 * piece, piece * kPiece,
                                    std::min(u.elements, (piece + 1) * kPiece));
      }
    });
    double parameter_square = 0;
    double ratio_square = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      parameter_square += (*squares)[2 * piece];
      ratio_square += (*squares)[2 * piece + 1];
    }
    const bool trusted = parameter_square != 0 && ratio_square != 0;
    const double trust = trusted ? std::sqrt(parameter_square / ratio_square) : 1;
    const float rate = static_cast<float>(u.rate * trust);
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->lamb_apply(k, rate, u.parameter, u.state(0), u.state(1), begin, end);
    });
  });
}

absl::Status LowerAdagrad(Lowering& lowering, const Node& node) {
  const AdagradSettings s = static_cast<const AdagradOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    const float rate = static_cast<float>(u.rate / (1 + (u.t() - 1) * s.lr_decay));
    const float epsilon = static_cast<float>(s.epsilon);
    const float weight_decay = static_cast<float>(s.weight_decay);
    const float initial = static_cast<float>(s.initial_accumulator);
    u.For([&](int64_t begin, int64_t end) {
      if (u.step == 0) std::fill(u.state(0) + begin, u.state(0) + end, initial);
      u.run.kernels->adagrad(rate, epsilon, weight_decay, u.parameter, u.grad, u.state(0), begin, end);
    });
  });
}

absl::Status LowerAdadelta(Lowering& lowering, const Node& node) {
  const AdadeltaSettings s = static_cast<const AdadeltaOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    RmspropCoefficients k;
    k.rate = static_cast<float>(u.rate);
    k.alpha = static_cast<float>(s.rho);
    k.fresh = static_cast<float>(1 - s.rho);
    k.epsilon = static_cast<float>(s.epsilon);
    k.weight_decay = static_cast<float>(s.weight_decay);
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->adadelta(k, u.parameter, u.grad, u.state(0), u.state(1), begin, end);
    });
  });
}

absl::Status LowerRmsprop(Lowering& lowering, const Node& node) {
  const RmspropSettings s = static_cast<const RmspropOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    RmspropCoefficients k;
    k.rate = static_cast<float>(u.rate);
    k.alpha = static_cast<float>(s.alpha);
    k.fresh = static_cast<float>(1 - s.alpha);
    k.epsilon = static_cast<float>(s.epsilon);
    k.weight_decay = static_cast<float>(s.weight_decay);
    k.momentum = static_cast<float>(s.momentum);
    float* mean = s.centered ? u.state(1) : nullptr;
    float* buffer = s.momentum != 0 ? u.state(s.centered ? 2 : 1) : nullptr;
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->rmsprop(k, u.parameter, u.grad, u.state(0), mean, buffer, begin, end);
    });
  });
}

absl::Status LowerSgd(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const SgdOp&>(*node.op);
  SgdCoefficients constants;
  constants.momentum = static_cast<float>(op.momentum);
  constants.dampening = static_cast<float>(op.dampening);
  constants.weight_decay = static_cast<float>(op.weight_decay);
  constants.nesterov = op.nesterov;
  return LowerUpdate(lowering, node, [constants](const Update& u) {
    SgdCoefficients k = constants;
    k.learning_rate = static_cast<float>(u.rate);
    k.first_step = u.step == 0;
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->sgd(k, u.parameter, u.grad, u.states.empty() ? nullptr : u.state(0), begin, end);
    });
  });
}

absl::Status LowerLion(Lowering& lowering, const Node& node) {
  const LionSettings s = static_cast<const LionOp&>(*node.op).settings;
  return LowerUpdate(lowering, node, [s](const Update& u) {
    const AdamCoefficients k = Coefficients(s);
    u.For([&](int64_t begin, int64_t end) {
      u.run.kernels->lion(k, static_cast<float>(u.rate), u.parameter, u.grad, u.state(0), begin, end);
    });
  });
}

absl::Status LowerClipGradients(Lowering& lowering, const Node& node) {
  const auto& op = static_cast<const ClipGradientsOp&>(*node.op);
  struct Tensor {
    Region from;
    Region to;
    int64_t elements;
    int64_t first_piece;
  };
  std::vector<Tensor> tensors;
  std::vector<Region> reads;
  std::vector<Region> writes;
  std::vector<std::pair<int, int>> in_place;
  int64_t pieces = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    TANDEM_RETURN_IF_ERROR(CheckFloat32(lowering, node, node.inputs[i]));
    TANDEM_ASSIGN_OR_RETURN(const Place home, lowering.Home(node.inputs[i]));
    // After its reduction a bucket has no other reader.
    const NodeId producer = lowering.value(node.inputs[i]).producer;
    const bool reduced = producer != kNoNode && lowering.graph().node(producer).op->kind() == "all_reduce" &&
                         lowering.uses().OnlyReader(node.inputs[i], "clip_gradients") != nullptr;
    Region to = home.region;
    if (reduced) {
      lowering.Alias(node.outputs[i], home);
    } else {
      to = lowering.Define(node.outputs[i], home.layout);
      in_place.emplace_back(static_cast<int>(i), static_cast<int>(i));
    }
    reads.push_back(home.region);
    writes.push_back(to);
    const int64_t elements = home.layout.elements();
    tensors.push_back({home.region, to, elements, pieces});
    pieces += Pieces(elements);
  }
  const bool by_norm = op.mode == ClipGradientsOp::Mode::kByNorm;
  const double limit = op.limit;
  const auto squares = std::make_shared<std::vector<double>>(by_norm ? pieces : 0);
  lowering.Emit({.name = "clip_gradients",
                 .reads = std::move(reads),
                 .writes = std::move(writes),
                 .in_place = std::move(in_place),
                 .run = [=](const RunContext& run) {
                   double factor = 1;
                   if (by_norm) {
                     for (const Tensor& tensor : tensors) {
                       const float* x = run.At<const float>(tensor.from);
                       run.team->For(Pieces(tensor.elements), [&](int64_t begin, int64_t end) {
                         for (int64_t piece = begin; piece < end; ++piece) {
                           (*squares)[tensor.first_piece + piece] = run.kernels->sum_of_squares(
                               x, piece * kPiece, std::min(tensor.elements, (piece + 1) * kPiece));
                         }
                       });
                     }
                     double sum = 0;
                     for (const double square : *squares) sum += square;
                     const double share = limit / (std::sqrt(sum) + ClipGradientsOp::kNormEpsilon);
                     if (!(share >= 1)) factor = share;
                   }
                   for (const Tensor& tensor : tensors) {
                     const float* x = run.At<const float>(tensor.from);
                     float* y = run.At<float>(tensor.to);
                     if (by_norm && factor == 1 && x == y) continue;
                     run.team->For(tensor.elements, [&](int64_t begin, int64_t end) {
                       if (by_norm) {
                         run.kernels->scale(x, static_cast<float>(factor), y, begin, end);
                       } else {
                         run.kernels->clamp(x, static_cast<float>(limit), y, begin, end);
                       }
                     });
                   }
                   return absl::OkStatus();
                 }});
  return absl::OkStatus();
}

}  // namespace tandem::cpu
