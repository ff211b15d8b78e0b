#include "tests/golden/optimizers.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/optimizers/optimizer.h"
#include "tests/golden/golden_case.h"

namespace tandem {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void ReadSgd(Attributes& attributes, v1::Optimizer& optimizer) {
  const double momentum = attributes.Number("momentum", 0);
  const double dampening = attributes.Number("dampening", 0);
  if (attributes.Flag("nesterov", false)) {
    optimizer.mutable_nesterov()->set_momentum(momentum);
  } else if (momentum != 0) {
    optimizer.mutable_momentum()->set_momentum(momentum);
    optimizer.mutable_momentum()->set_dampening(dampening);
  } else {
    optimizer.mutable_sgd();
  }
}

// Every setting whose name is a field's; `eps` and `betas` stand for fields too.
void ReadFields(Attributes& attributes, Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  const std::vector<double> betas = attributes.Numbers("betas");
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    std::string key = field->name();
    if (key == "epsilon") key = "eps";
    if (key == "learning_rate") key = "lr";
    if (betas.size() == 2 && (key == "beta1" || key == "beta2")) {
      reflection.SetDouble(message, field, betas[key == "beta1" ? 0 : 1]);
    } else if (!attributes.Has(key)) {
      attributes.Ignore(key);
    } else if (field->is_repeated()) {
      for (const double number : attributes.Numbers(key)) reflection.AddDouble(message, field, number);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      reflection.SetBool(message, field, attributes.Flag(key, false));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      reflection.SetInt32(message, field, static_cast<int32_t>(attributes.Whole(key, 0)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      reflection.SetDouble(message, field, attributes.Number(key, 0));
    }
  }
}

}  // namespace

absl::StatusOr<v1::Optimizer> ReadOptimizer(const nlohmann::json& attrs) {
  Attributes attributes(attrs);
  const std::string type = attributes.Text("type", "");
  v1::Optimizer optimizer;
  if (type == "sgd") {
    ReadSgd(attributes, optimizer);
  } else if (type == "adam" && attributes.Flag("decoupled_weight_decay", false)) {
    optimizer.mutable_adamw();
  } else {
    const FieldDescriptor* kind = v1::Optimizer::descriptor()->FindFieldByName(type);
    if (kind == nullptr || kind->containing_oneof() == nullptr) {
      return absl::UnimplementedError(absl::StrCat("optimizer ", type, " is not offered yet"));
    }
    optimizer.GetReflection()->MutableMessage(&optimizer, kind);
  }
  const FieldDescriptor* kind = optimizer.GetReflection()->GetOneofFieldDescriptor(
      optimizer, v1::Optimizer::descriptor()->FindOneofByName("kind"));
  ReadFields(attributes, optimizer.GetReflection()->MutableMessage(&optimizer, kind));
  if (optimizer.has_muon()) {
    const std::string scale = attributes.Text("adjust_lr_fn", "original");
    if (scale == "match_rms_adamw") {
      optimizer.mutable_muon()->set_scale(v1::MUON_SCALE_MATCH_ADAMW);
    } else if (scale != "original") {
      return absl::UnimplementedError(absl::StrCat("muon's adjust_lr_fn ", scale, " is not offered yet"));
    }
  }
  if (attributes.Has("clip_norm")) {
    optimizer.mutable_clip()->set_norm(attributes.Number("clip_norm", 0));
  } else if (attributes.Has("clip_value")) {
    optimizer.mutable_clip()->set_value(attributes.Number("clip_value", 0));
  }
  if (attributes.Flag("maximize", false)) return absl::UnimplementedError("maximize is not offered yet");
  // Ways of computing the same.
  for (const char* key : {"clip_norm", "clip_value", "foreach", "fused", "capturable", "differentiable"}) {
    attributes.Ignore(key);
  }
  if (optimizer.has_adam() || optimizer.has_adamw()) attributes.Ignore("decoupled_weight_decay");
  TANDEM_RETURN_IF_ERROR(attributes.Finish());
  FillOptimizerDefaults(&optimizer);
  TANDEM_RETURN_IF_ERROR(CheckOptimizer(optimizer));
  return optimizer;
}

absl::Status AddOptimizer(Graph& graph, const v1::Optimizer& optimizer, absl::Span<const ValueId> parameters,
                          absl::Span<const ValueId> grads) {
  const ValueId learning_rate = graph.AddInput("learning_rate", DType::kFloat64, {});
  const ValueId step = graph.AddInput("step", DType::kInt64, {});
  return AddUpdates(optimizer, parameters, grads, learning_rate, step, graph);
}

}  // namespace tandem
