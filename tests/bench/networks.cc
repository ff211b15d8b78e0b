#include "tests/bench/networks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/layers/model_template.h"
#include "google/protobuf/text_format.h"

namespace tandem {
namespace {

constexpr char kLenet[] = R"(
  input { shape: [1, 28, 28] }
  layers { conv2d { filters: 20 kernel: [5, 5] } }
  layers { max_pool2d { size: [2, 2] } }
  layers { conv2d { filters: 50 kernel: [5, 5] } }
  layers { max_pool2d { size: [2, 2] } }
  layers { dense { units: 500 activation: ACTIVATION_RELU } }
  layers { dense { units: 10 } })";

// As deploy/examples/mini-gpt-text.yaml, with the default initial weights.
constexpr char kMiniGpt[] = R"(
  input { shape: [128] }
  layers { embedding { vocabulary_size: 256 dimension: 128 } }
  layers { positional_embedding {} }
  layers { repeat { count: 3
    layers { residual { layers { layer_norm {} } layers { multi_head_attention { heads: 4 causal: true } } } }
    layers { residual { layers { layer_norm {} }
      layers { dense { units: 512 per_position: true activation: ACTIVATION_GELU } }
      layers { dense { units: 128 per_position: true } } } } } }
  layers { layer_norm {} }
  layers { dense { units: 256 per_position: true use_bias: false } })";

// Two 3x3 convolutions, each with its normalisation; halving ones have a 1x1 convolution as their shortcut.
std::string ResidualBlock(int filters, bool halves) {
  const std::string stride = halves ? " stride: [2]" : "";
  const std::string shortcut =
      halves ? absl::StrCat(" shortcut { conv2d { filters: ", filters, " kernel: [1] stride: [2] } }") : "";
  return absl::StrCat(
      "layers { residual { activation: ACTIVATION_RELU layers { conv2d { filters: ", filters,
      " kernel: [3] padding: [1]", stride,
      " } } layers { batch_norm { activation: ACTIVATION_RELU } } layers { conv2d { filters: ", filters,
      " kernel: [3] padding: [1] } } layers { batch_norm {} }", shortcut, " } }\n");
}

std::string Resnet18() {
  std::string model =
      "input { shape: [1, 28, 28] } layers { conv2d { filters: 64 kernel: [3] padding: [1] } } "
      "layers { batch_norm { activation: ACTIVATION_RELU } }\n";
  for (const int filters : {64, 128, 256, 512}) {
    model += ResidualBlock(filters, filters > 64);
    model += ResidualBlock(filters, false);
  }
  return model + "layers { global_average_pool2d {} } layers { dense { units: 10 } }";
}

}  // namespace

absl::StatusOr<v1::Model> NetworkNamed(absl::string_view name) {
  v1::Model model;
  if (name == "matlab-cifar") {
    model.mutable_template_()->mutable_matlab_cifar();
    TANDEM_RETURN_IF_ERROR(ExpandTemplate(CustomaryData(model.template_()), &model));
    return model;
  }
  std::string text;
  if (name == "lenet") {
    text = kLenet;
  } else if (name == "resnet18") {
    text = Resnet18();
  } else if (name == "mini-gpt") {
    text = kMiniGpt;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is no network; give lenet, resnet18, matlab-cifar or mini-gpt"));
  }
  if (!google::protobuf::TextFormat::ParseFromString(text, &model)) {
    return absl::InternalError(absl::StrCat("the network \"", name, "\" cannot be parsed"));
  }
  return model;
}

absl::StatusOr<v1::JobSpec> JobOf(absl::string_view network, double learning_rate, double momentum) {
  v1::JobSpec spec;
  TANDEM_ASSIGN_OR_RETURN(*spec.mutable_model(), NetworkNamed(network));
  if (network == "mini-gpt") {
    spec.mutable_dataset()->mutable_synthetic()->set_vocabulary(256);
  } else {
    spec.mutable_dataset()->mutable_synthetic()->set_classes(10);
  }
  *spec.mutable_dataset()->mutable_synthetic()->mutable_shape() = spec.model().input().shape();
  v1::Training* training = spec.mutable_training();
  training->mutable_loss()->mutable_softmax_cross_entropy();
  if (momentum > 0) {
    training->mutable_optimizer()->mutable_nesterov()->set_learning_rate(learning_rate);
    training->mutable_optimizer()->mutable_nesterov()->set_momentum(momentum);
  } else {
    training->mutable_optimizer()->mutable_sgd()->set_learning_rate(learning_rate);
  }
  return spec;
}

}  // namespace tandem
