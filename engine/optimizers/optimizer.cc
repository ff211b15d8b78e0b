#include "engine/optimizers/optimizer.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/sgd.h"
#include "engine/optimizers/parameter_groups.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Defaults of the numbers that have one other than 0, by "<kind>.<field>".
struct Default {
  absl::string_view kind;
  absl::string_view field;
  double value;
};
constexpr Default kDefaults[] = {
    {"momentum", "momentum", 0.9},
    {"nesterov", "momentum", 0.9},
    {"adam", "learning_rate", 1e-3},
    {"adam", "beta1", 0.9},
    {"adam", "beta2", 0.999},
    {"adam", "epsilon", 1e-8},
    {"adamw", "learning_rate", 1e-3},
    {"adamw", "beta1", 0.9},
    {"adamw", "beta2", 0.999},
    {"adamw", "epsilon", 1e-8},
    {"adamw", "weight_decay", 1e-2},
    {"nadam", "learning_rate", 2e-3},
    {"nadam", "beta1", 0.9},
    {"nadam", "beta2", 0.999},
    {"nadam", "epsilon", 1e-8},
    {"nadam", "momentum_decay", 4e-3},
    {"adamax", "learning_rate", 2e-3},
    {"adamax", "beta1", 0.9},
    {"adamax", "beta2", 0.999},
    {"adamax", "epsilon", 1e-8},
    {"rmsprop", "learning_rate", 1e-2},
    {"rmsprop", "alpha", 0.99},
    {"rmsprop", "epsilon", 1e-8},
    {"adagrad", "learning_rate", 1e-2},
    {"adagrad", "epsilon", 1e-10},
    {"adadelta", "learning_rate", 1},
    {"adadelta", "rho", 0.9},
    {"adadelta", "epsilon", 1e-6},
    {"lion", "learning_rate", 1e-4},
    {"lion", "beta1", 0.9},
    {"lion", "beta2", 0.99},
    {"lamb", "learning_rate", 1e-3},
    {"lamb", "beta1", 0.9},
    {"lamb", "beta2", 0.999},
    {"lamb", "epsilon", 1e-6},
};

// The kind that is set; null where there is none.
const FieldDescriptor* KindOf(const v1::Optimizer& optimizer) {
  return optimizer.GetReflection()->GetOneofFieldDescriptor(
      optimizer, v1::Optimizer::descriptor()->FindOneofByName("kind"));
}

// What a number must be, by its field's name; empty where it is so.
std::string FaultOf(absl::string_view kind, absl::string_view field, double value) {
  if (field == "learning_rate" || field == "epsilon") {
    return value > 0 && std::isfinite(value) ? "" : "it must be finite and above 0";
  }
  if (field == "momentum" || field == "dampening" || field == "beta1" || field == "beta2" ||
      field == "alpha" || field == "rho") {
    if (kind == "nesterov" && value == 0) return "it must be above 0 and below 1";
    return value >= 0 && value < 1 ? "" : "it must be at least 0 and below 1";
  }
  return value >= 0 && std::isfinite(value) ? "" : "it must be finite and at least 0";
}

void CheckClipping(const v1::GradientClipping& clip, FieldViolations& violations) {
  const bool by_norm = clip.has_norm();
  if (!by_norm && !clip.has_value()) {
    violations.Add("clip", "says not how; give norm or value");
    return;
  }
  const double limit = by_norm ? clip.norm() : clip.value();
  if (limit > 0 && std::isfinite(limit)) return;
  violations.Add(by_norm ? "clip.norm" : "clip.value",
                 absl::StrCat("is ", limit, "; it must be finite and above 0"));
}

// The weight decay that the message gives.
double WeightDecayOf(const v1::Optimizer& optimizer) {
  const FieldDescriptor* kind = KindOf(optimizer);
  const Message& message = optimizer.GetReflection()->GetMessage(optimizer, kind);
  return message.GetReflection()->GetDouble(message, kind->message_type()->FindFieldByName("weight_decay"));
}

std::shared_ptr<const UpdateOp> MakeOp(const v1::Optimizer& optimizer, double weight_decay) {
  switch (optimizer.kind_case()) {
    case v1::Optimizer::kSgd:
      return std::make_shared<SgdOp>(0, 0, false, weight_decay);
    case v1::Optimizer::kMomentum:
      return std::make_shared<SgdOp>(optimizer.momentum().momentum(), optimizer.momentum().dampening(), false,
                                     weight_decay);
    case v1::Optimizer::kNesterov:
      return std::make_shared<SgdOp>(optimizer.nesterov().momentum(), 0, true, weight_decay);
    case v1::Optimizer::kAdam: {
      const v1::Adam& adam = optimizer.adam();
      return std::make_shared<AdamOp>(
          AdamSettings{adam.beta1(), adam.beta2(), adam.epsilon(), weight_decay, false, adam.amsgrad()});
    }
    case v1::Optimizer::kAdamw: {
      const v1::AdamW& adam = optimizer.adamw();
      return std::make_shared<AdamOp>(
          AdamSettings{adam.beta1(), adam.beta2(), adam.epsilon(), weight_decay, true, adam.amsgrad()});
    }
    case v1::Optimizer::kNadam: {
      const v1::Nadam& nadam = optimizer.nadam();
      return std::make_shared<NadamOp>(NadamSettings{nadam.beta1(), nadam.beta2(), nadam.epsilon(),
                                                     weight_decay, nadam.decoupled_weight_decay(),
                                                     nadam.momentum_decay()});
    }
    case v1::Optimizer::kAdamax: {
      const v1::Adamax& adamax = optimizer.adamax();
      return std::make_shared<AdamaxOp>(
          AdamaxSettings{adamax.beta1(), adamax.beta2(), adamax.epsilon(), weight_decay});
    }
    case v1::Optimizer::kRmsprop: {
      const v1::Rmsprop& rmsprop = optimizer.rmsprop();
      return std::make_shared<RmspropOp>(RmspropSettings{rmsprop.alpha(), rmsprop.epsilon(), weight_decay,
                                                         rmsprop.momentum(), rmsprop.centered()});
    }
    case v1::Optimizer::kAdagrad: {
      const v1::Adagrad& adagrad = optimizer.adagrad();
      return std::make_shared<AdagradOp>(AdagradSettings{adagrad.lr_decay(), adagrad.epsilon(), weight_decay,
                                                         adagrad.initial_accumulator_value()});
    }
    case v1::Optimizer::kAdadelta:
      return std::make_shared<AdadeltaOp>(
          AdadeltaSettings{optimizer.adadelta().rho(), optimizer.adadelta().epsilon(), weight_decay});
    case v1::Optimizer::kLion:
      return std::make_shared<LionOp>(
          LionSettings{optimizer.lion().beta1(), optimizer.lion().beta2(), weight_decay});
    case v1::Optimizer::kLamb: {
      const v1::Lamb& lamb = optimizer.lamb();
      return std::make_shared<LambOp>(LambSettings{lamb.beta1(), lamb.beta2(), lamb.epsilon(), weight_decay});
    }
    case v1::Optimizer::kMuon:
    case v1::Optimizer::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

}  // namespace

void FillOptimizerDefaults(v1::Optimizer* optimizer) {
  const FieldDescriptor* kind = KindOf(*optimizer);
  if (kind == nullptr) return;
  Message* message = optimizer->GetReflection()->MutableMessage(optimizer, kind);
  const Reflection& reflection = *message->GetReflection();
  for (const Default& entry : kDefaults) {
    if (kind->name() != entry.kind) continue;
    const FieldDescriptor* field = kind->message_type()->FindFieldByName(std::string(entry.field));
    if (!reflection.HasField(*message, field)) reflection.SetDouble(message, field, entry.value);
  }
}

absl::Status CheckOptimizer(const v1::Optimizer& optimizer) {
  FieldViolations violations;
  const FieldDescriptor* kind = KindOf(optimizer);
  if (kind == nullptr) {
    violations.Add("",
                   "names no optimizer that is known; give sgd, momentum, nesterov, adam, adamw, nadam, "
                   "adamax, rmsprop, adagrad, adadelta, lion or lamb");
    return violations.ToStatus();
  }
  if (optimizer.has_muon()) {
    violations.Add("muon", "is not available yet; give another optimizer");
    return violations.ToStatus();
  }
  const Message& message = optimizer.GetReflection()->GetMessage(optimizer, kind);
  for (int i = 0; i < kind->message_type()->field_count(); ++i) {
    const FieldDescriptor* field = kind->message_type()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE) continue;
    const std::string path = absl::StrCat(kind->name(), ".", field->name());
    if (field->name() == "learning_rate" && !message.GetReflection()->HasField(message, field)) {
      violations.Add(path, "is required");
      continue;
    }
    const double value = message.GetReflection()->GetDouble(message, field);
    const std::string fault = FaultOf(kind->name(), field->name(), value);
    if (!fault.empty()) violations.Add(path, absl::StrCat("is ", value, "; ", fault));
  }
  if (optimizer.has_clip()) CheckClipping(optimizer.clip(), violations);
  CheckParameterGroups(optimizer, violations);
  return violations.ToStatus();
}

double LearningRateOf(const v1::Optimizer& optimizer) {
  const FieldDescriptor* kind = KindOf(optimizer);
  if (kind == nullptr) return 0;
  const Message& message = optimizer.GetReflection()->GetMessage(optimizer, kind);
  return message.GetReflection()->GetDouble(message, kind->message_type()->FindFieldByName("learning_rate"));
}

absl::Status AddUpdates(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        absl::Span<const ValueId> gradients, ValueId learning_rate, ValueId step,
                        Graph& graph) {
  if (KindOf(optimizer) == nullptr) return absl::InvalidArgumentError("the optimizer names no kind");
  TANDEM_RETURN_IF_ERROR(CheckGroupNames(optimizer, parameters, graph));
  std::vector<ValueId> clipped(gradients.begin(), gradients.end());
  if (optimizer.has_clip() && !clipped.empty()) {
    const bool by_norm = optimizer.clip().has_norm();
    TANDEM_ASSIGN_OR_RETURN(
        clipped, graph.AddNode(std::make_shared<ClipGradientsOp>(
                                   by_norm ? ClipGradientsOp::Mode::kByNorm : ClipGradientsOp::Mode::kByValue,
                                   by_norm ? optimizer.clip().norm() : optimizer.clip().value(),
                                   static_cast<int>(clipped.size())),
                               clipped));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value& parameter = graph.value(parameters[i]);
    const v1::ParameterGroup* group = FindGroup(optimizer, parameter);
    const std::shared_ptr<const UpdateOp> op =
        MakeOp(optimizer, group != nullptr ? group->weight_decay() : WeightDecayOf(optimizer));
    std::vector<ValueId> inputs = {parameters[i], clipped[i], learning_rate, step};
    for (const OptimizerState& state : op->states()) {
      inputs.push_back(graph.AddVariable(
          absl::StrCat(state.name, "/", parameter.name), VariableKind::kOptimizerState,
          state.scalar ? DType::kFloat64 : parameter.dtype, state.scalar ? Shape() : parameter.shape));
    }
    TANDEM_RETURN_IF_ERROR(graph.AddNode(op, std::move(inputs)).status());
  }
  return absl::OkStatus();
}

}  // namespace tandem
