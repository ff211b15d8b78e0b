#include "engine/optimizers/optimizer.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/graph/ops/sgd.h"

namespace tandem {
namespace {

constexpr double kDefaultMomentum = 0.9;

template <typename Message>
void CheckLearningRate(absl::string_view kind, const Message& message, FieldViolations& violations) {
  const std::string field = absl::StrCat(kind, ".learning_rate");
  if (!message.has_learning_rate()) {
    violations.Add(field, "is required");
  } else if (!(message.learning_rate() > 0) || !std::isfinite(message.learning_rate())) {
    violations.Add(field, absl::StrCat("is ", message.learning_rate(), "; it must be finite and above 0"));
  }
}

template <typename Message>
void CheckWeightDecay(absl::string_view kind, const Message& message, FieldViolations& violations) {
  if (message.weight_decay() >= 0 && std::isfinite(message.weight_decay())) return;
  violations.Add(absl::StrCat(kind, ".weight_decay"),
                 absl::StrCat("is ", message.weight_decay(), "; it must be finite and at least 0"));
}

void CheckShare(const std::string& field, double value, FieldViolations& violations) {
  if (value >= 0 && value < 1) return;
  violations.Add(field, absl::StrCat("is ", value, "; it must be at least 0 and below 1"));
}

std::shared_ptr<const SgdOp> MakeOp(const v1::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd:
      return std::make_shared<SgdOp>(0, 0, false, optimizer.sgd().weight_decay());
    case v1::Optimizer::kMomentum: {
      const v1::Momentum& momentum = optimizer.momentum();
      return std::make_shared<SgdOp>(momentum.momentum(), momentum.dampening(), false,
                                     momentum.weight_decay());
    }
    case v1::Optimizer::kNesterov: {
      const v1::Nesterov& nesterov = optimizer.nesterov();
      return std::make_shared<SgdOp>(nesterov.momentum(), 0, true, nesterov.weight_decay());
    }
    case v1::Optimizer::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace

void FillOptimizerDefaults(v1::Optimizer* optimizer) {
  if (optimizer->has_momentum() && !optimizer->momentum().has_momentum()) {
    optimizer->mutable_momentum()->set_momentum(kDefaultMomentum);
  }
  if (optimizer->has_nesterov() && !optimizer->nesterov().has_momentum()) {
    optimizer->mutable_nesterov()->set_momentum(kDefaultMomentum);
  }
}

absl::Status CheckOptimizer(const v1::Optimizer& optimizer) {
  FieldViolations violations;
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd:
      CheckLearningRate("sgd", optimizer.sgd(), violations);
      CheckWeightDecay("sgd", optimizer.sgd(), violations);
      break;
    case v1::Optimizer::kMomentum:
      CheckLearningRate("momentum", optimizer.momentum(), violations);
      CheckShare("momentum.momentum", optimizer.momentum().momentum(), violations);
      CheckShare("momentum.dampening", optimizer.momentum().dampening(), violations);
      CheckWeightDecay("momentum", optimizer.momentum(), violations);
      break;
    case v1::Optimizer::kNesterov: {
      CheckLearningRate("nesterov", optimizer.nesterov(), violations);
      const double momentum = optimizer.nesterov().momentum();
      if (!(momentum > 0 && momentum < 1)) {
        violations.Add("nesterov.momentum",
                       absl::StrCat("is ", momentum, "; it must be above 0 and below 1"));
      }
      CheckWeightDecay("nesterov", optimizer.nesterov(), violations);
      break;
    }
    case v1::Optimizer::KIND_NOT_SET:
      violations.Add("", "names no optimizer that is known; give sgd, momentum or nesterov");
      break;
  }
  return violations.ToStatus();
}

double LearningRateOf(const v1::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd:
      return optimizer.sgd().learning_rate();
    case v1::Optimizer::kMomentum:
      return optimizer.momentum().learning_rate();
    case v1::Optimizer::kNesterov:
      return optimizer.nesterov().learning_rate();
    case v1::Optimizer::KIND_NOT_SET:
      break;
  }
  return 0;
}

absl::Status AddUpdate(const v1::Optimizer& optimizer, ValueId parameter, ValueId gradient,
                       ValueId learning_rate, ValueId step, Graph& graph) {
  const std::shared_ptr<const SgdOp> op = MakeOp(optimizer);
  if (op == nullptr) return absl::InvalidArgumentError("the optimizer names no kind");
  std::vector<ValueId> inputs = {parameter, gradient, learning_rate, step};
  if (op->momentum != 0) {
    const Value& value = graph.value(parameter);
    inputs.push_back(graph.AddVariable(absl::StrCat("momentum/", value.name), VariableKind::kOptimizerState,
                                       value.dtype, value.shape));
  }
  return graph.AddNode(op, std::move(inputs)).status();
}

}  // namespace tandem
