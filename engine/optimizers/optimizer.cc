#include "engine/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/muon.h"
#include "engine/graph/ops/sgd.h"
#include "engine/optimizers/parameter_groups.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The default of a number other than 0, by "<kind>.<field>".
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
    {"muon", "learning_rate", 1e-3},
    {"muon", "momentum", 0.95},
    {"muon", "weight_decay", 0.1},
    {"muon", "epsilon", 1e-7},
};

constexpr int kMuonSteps = 5;
constexpr double kMuonCoefficients[] = {3.4445, -4.775, 2.0315};

// Returns the set kind, or null.
const FieldDescriptor* KindOf(const v1::Optimizer& optimizer) {
  return optimizer.GetReflection()->GetOneofFieldDescriptor(
      optimizer, v1::Optimizer::descriptor()->FindOneofByName("kind"));
}

// Returns the fault of a number, by its field's name, or "".
std::string FaultOf(absl::string_view kind, absl::string_view field, double value) {
  if (field == "learning_rate") {
    return value > 0 && std::isfinite(value) ? "" : "it must be finite and above 0";
  }
  if (field == "epsilon") {
    // float32 must not round it to 0, because then a quotient could be 0 / 0.
    constexpr double kLeast = std::numeric_limits<float>::min();
    return value >= kLeast && std::isfinite(value) ? ""
                                                   : absl::StrCat("it must be finite and at least ", kLeast);
  }
  if (field == "momentum" || field == "dampening" || field == "beta1" || field == "beta2" ||
      field == "alpha" || field == "rho") {
    if (kind == "nesterov" && value == 0) return "it must be above 0 and below 1";
    return value >= 0 && value < 1 ? "" : "it must be at least 0 and below 1";
  }
  return value >= 0 && std::isfinite(value) ? "" : "it must be finite and at least 0";
}

void CheckClipping(const v1::GradientClipping& clip, FieldViolations& violations) {
  switch (clip.kind_case()) {
    case v1::GradientClipping::kNorm:
      return CheckAboveZero("clip.norm", clip.norm(), violations);
    case v1::GradientClipping::kValue:
      return CheckAboveZero("clip.value", clip.value(), violations);
    case v1::GradientClipping::kParameterNorm:
      return CheckAboveZero("clip.parameter_norm", clip.parameter_norm(), violations);
    case v1::GradientClipping::KIND_NOT_SET:
      violations.Add("clip", "says not how; give norm, value or parameter_norm");
  }
}

// Appends the clipping of `gradients`, and returns the clipped gradients.
absl::StatusOr<std::vector<ValueId>> Clip(const v1::GradientClipping& clip, std::vector<ValueId> gradients,
                                          Graph& graph) {
  using Mode = ClipGradientsOp::Mode;
  if (clip.has_parameter_norm()) {
    for (ValueId& gradient : gradients) {
      TANDEM_ASSIGN_OR_RETURN(gradient, graph.Add(std::make_shared<ClipGradientsOp>(
                                                      Mode::kByNorm, clip.parameter_norm(), /*count=*/1),
                                                  {gradient}));
    }
    return gradients;
  }
  const auto count = static_cast<int>(gradients.size());
  const auto op = clip.has_norm() ? std::make_shared<ClipGradientsOp>(Mode::kByNorm, clip.norm(), count)
                                  : std::make_shared<ClipGradientsOp>(Mode::kByValue, clip.value(), count);
  return graph.AddNode(op, gradients);
}

// Returns a number of the set kind, by its field's name.
double NumberOf(const v1::Optimizer& optimizer, const char* field) {
  const FieldDescriptor* kind = KindOf(optimizer);
  const Message& message = optimizer.GetReflection()->GetMessage(optimizer, kind);
  return message.GetReflection()->GetDouble(message, kind->message_type()->FindFieldByName(field));
}

// Checks the numbers of a kind's message. `path` is the message's field.
void CheckNumbers(absl::string_view kind, const Message& message, const std::string& path,
                  FieldViolations& violations) {
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message.GetDescriptor()->field(i);
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE || field->is_repeated()) continue;
    const std::string name = absl::StrCat(path, ".", field->name());
    if (field->name() == "learning_rate" && !message.GetReflection()->HasField(message, field)) {
      violations.Add(name, "is required");
      continue;
    }
    const double value = message.GetReflection()->GetDouble(message, field);
    const std::string fault = FaultOf(kind, field->name(), value);
    if (!fault.empty()) violations.Add(name, absl::StrCat("is ", value, "; ", fault));
  }
}

void CheckMuon(const v1::Muon& muon, FieldViolations& violations) {
  if (muon.ns_steps() < 1 || muon.ns_steps() > MuonOp::kMaxSteps) {
    violations.Add("muon.ns_steps",
                   absl::StrCat("is ", muon.ns_steps(), "; it must be from 1 to ", MuonOp::kMaxSteps));
  }
  const auto finite = [](double number) { return std::isfinite(number); };
  if (muon.ns_coefficients_size() != 3 ||
      !std::all_of(muon.ns_coefficients().begin(), muon.ns_coefficients().end(), finite)) {
    violations.Add("muon.ns_coefficients", "must be three finite numbers, or none");
  }
  if (!v1::MuonScale_IsValid(muon.scale())) {
    violations.Add("muon.scale", absl::StrCat("is ", static_cast<int>(muon.scale()), ", which is no scale"));
  }
  CheckNumbers("adamw", muon.adamw(), "muon.adamw", violations);
}

// A parameter's update, and its factor of the learning rate.
struct Update {
  std::shared_ptr<const UpdateOp> op;
  double rate_factor = 1;
};

std::shared_ptr<const UpdateOp> MakeAdamW(const v1::AdamW& adam, double weight_decay) {
  return std::make_shared<AdamOp>(
      AdamSettings{adam.beta1(), adam.beta2(), adam.epsilon(), weight_decay, true, adam.amsgrad()});
}

// For a parameter of two dimensions.
std::shared_ptr<const UpdateOp> MakeMuon(const v1::Muon& muon, double weight_decay) {
  MuonSettings settings;
  settings.momentum = muon.momentum();
  settings.nesterov = muon.nesterov();
  settings.weight_decay = weight_decay;
  settings.steps = muon.ns_steps();
  std::copy(muon.ns_coefficients().begin(), muon.ns_coefficients().end(), settings.coefficients.begin());
  settings.epsilon = muon.epsilon();
  settings.match_adamw = muon.scale() == v1::MUON_SCALE_MATCH_ADAMW;
  return std::make_shared<MuonOp>(settings);
}

bool IsMuons(const v1::Muon& muon, const Value& parameter) {
  return parameter.shape.rank() == 2 &&
         std::none_of(muon.adamw_names().begin(), muon.adamw_names().end(),
                      [&](const std::string& pattern) { return MatchesName(pattern, parameter.name); });
}

// For the kinds with a single op for all parameters.
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
    case v1::Optimizer::kAdamw:
      return MakeAdamW(optimizer.adamw(), weight_decay);
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

Update MakeUpdate(const v1::Optimizer& optimizer, const Value& parameter) {
  const v1::ParameterGroup* group = FindGroup(optimizer, parameter);
  const auto weight_decay = [group](double given) {
    return group != nullptr && group->has_weight_decay() ? group->weight_decay() : given;
  };
  Update update;
  if (group != nullptr && group->has_learning_rate_factor()) {
    update.rate_factor = group->learning_rate_factor();
  }
  if (!optimizer.has_muon()) {
    update.op = MakeOp(optimizer, weight_decay(NumberOf(optimizer, "weight_decay")));
    return update;
  }
  const v1::Muon& muon = optimizer.muon();
  if (IsMuons(muon, parameter)) {
    update.op = MakeMuon(muon, weight_decay(muon.weight_decay()));
  } else {
    update.op = MakeAdamW(muon.adamw(), weight_decay(muon.adamw().weight_decay()));
    update.rate_factor *= muon.adamw().learning_rate() / muon.learning_rate();
  }
  return update;
}

void FillNumbers(absl::string_view kind, Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (const Default& entry : kDefaults) {
    if (kind != entry.kind) continue;
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(std::string(entry.field));
    if (!reflection.HasField(*message, field)) reflection.SetDouble(message, field, entry.value);
  }
}

}  // namespace

void FillOptimizerDefaults(v1::Optimizer* optimizer) {
  const FieldDescriptor* kind = KindOf(*optimizer);
  if (kind == nullptr) return;
  FillNumbers(kind->name(), optimizer->GetReflection()->MutableMessage(optimizer, kind));
  if (!optimizer->has_muon()) return;
  v1::Muon* muon = optimizer->mutable_muon();
  FillNumbers("adamw", muon->mutable_adamw());
  if (!muon->has_nesterov()) muon->set_nesterov(true);
  if (muon->ns_steps() == 0) muon->set_ns_steps(kMuonSteps);
  if (muon->ns_coefficients().empty()) {
    for (const double coefficient : kMuonCoefficients) muon->add_ns_coefficients(coefficient);
  }
}

absl::Status CheckOptimizer(const v1::Optimizer& optimizer) {
  FieldViolations violations;
  const FieldDescriptor* kind = KindOf(optimizer);
  if (kind == nullptr) {
    violations.Add("",
                   "names no optimizer that is known; give sgd, momentum, nesterov, adam, adamw, nadam, "
                   "adamax, rmsprop, adagrad, adadelta, lion, lamb or muon");
    return violations.ToStatus();
  }
  CheckNumbers(kind->name(), optimizer.GetReflection()->GetMessage(optimizer, kind), kind->name(),
               violations);
  if (optimizer.has_muon()) CheckMuon(optimizer.muon(), violations);
  if (optimizer.has_clip()) CheckClipping(optimizer.clip(), violations);
  CheckParameterGroups(optimizer, violations);
  return violations.ToStatus();
}

double LearningRateOf(const v1::Optimizer& optimizer) {
  return KindOf(optimizer) == nullptr ? 0 : NumberOf(optimizer, "learning_rate");
}

bool IsFrozen(const v1::Optimizer& optimizer, const Value& parameter) {
  const v1::ParameterGroup* group = FindGroup(optimizer, parameter);
  return group != nullptr && group->frozen();
}

absl::Status AddUpdates(const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                        absl::Span<const ValueId> gradients, ValueId learning_rate, ValueId step,
                        Graph& graph, ValueId apply, UpdateOrder order) {
  if (KindOf(optimizer) == nullptr) return absl::InvalidArgumentError("the optimizer names no kind");
  TANDEM_RETURN_IF_ERROR(CheckNames(optimizer, parameters, graph));
  std::vector<ValueId> changed;
  std::vector<ValueId> clipped;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i] == kNoValue) continue;
    changed.push_back(parameters[i]);
    clipped.push_back(gradients[i]);
  }
  if (optimizer.has_clip() && !clipped.empty()) {
    TANDEM_ASSIGN_OR_RETURN(clipped, Clip(optimizer.clip(), std::move(clipped), graph));
  }
  // By factor.
  std::map<double, ValueId> rates = {{1, learning_rate}};
  struct Ready {
    std::shared_ptr<const Op> op;
    std::vector<ValueId> inputs;
  };
  std::vector<Ready> updates;  // Variables are declared in the same order for every order of updates.
  for (size_t i = 0; i < changed.size(); ++i) {
    const Value& parameter = graph.value(changed[i]);
    const Update update = MakeUpdate(optimizer, parameter);
    if (rates.count(update.rate_factor) == 0) {
      TANDEM_ASSIGN_OR_RETURN(rates[update.rate_factor],
                              graph.Add(std::make_shared<ScaleOp>(update.rate_factor), {learning_rate}));
    }
    std::vector<ValueId> inputs = {changed[i], clipped[i], rates[update.rate_factor], step};
    for (const absl::string_view state : update.op->states()) {
      inputs.push_back(graph.AddVariable(absl::StrCat(state, "/", parameter.name),
                                         VariableKind::kOptimizerState, parameter.dtype, parameter.shape));
    }
    if (apply != kNoValue) inputs.push_back(apply);
    updates.push_back({update.op, std::move(inputs)});
  }
  if (order == UpdateOrder::kLastFirst) std::reverse(updates.begin(), updates.end());
  for (Ready& update : updates) {
    TANDEM_RETURN_IF_ERROR(graph.AddNode(std::move(update.op), std::move(update.inputs)).status());
  }
  return absl::OkStatus();
}

}  // namespace tandem
