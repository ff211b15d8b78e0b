#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/layers/activation.h"
#include "engine/layers/templates/templates.h"

namespace tandem {
namespace {

constexpr double kMaxLenetWidth = 64;
constexpr int kMaxMlpLayers = 64;
constexpr int64_t kMaxUnits = 65536;
constexpr int64_t kMaxWidth = 1024;
constexpr int64_t kMaxDepth = 64;

v1::Activation Or(v1::Activation activation, v1::Activation otherwise) {
  return activation == v1::ACTIVATION_UNSPECIFIED ? otherwise : activation;
}

}  // namespace

void ExpandLenet(const v1::LenetTemplate& lenet, const TemplateData& data, v1::Model& model,
                 FieldViolations& violations) {
  const double width = lenet.has_width() ? lenet.width() : 1;
  if (!(width > 0 && width <= kMaxLenetWidth)) {
    violations.Add("width", absl::StrCat("is ", width, "; it must be above 0 and at most ", kMaxLenetWidth));
    return;
  }
  CheckActivation("activation", Or(lenet.activation(), v1::ACTIVATION_IDENTITY), violations);
  const auto scaled = [width](double count) { return std::max<int64_t>(1, std::llround(count * width)); };
  for (const int64_t filters : {scaled(20), scaled(50)}) {
    v1::Conv2d& conv = AppendConvolution("", {.filters = filters, .kernel = 5}, model);
    conv.set_activation(Or(lenet.activation(), v1::ACTIVATION_IDENTITY));
    if (lenet.average_pool()) {
      model.add_layers()->mutable_average_pool2d()->add_size(2);
    } else {
      AppendMaxPool("", 2, 2, 0, model);
    }
  }
  AppendDense("", scaled(500), v1::ACTIVATION_RELU, model);
  AppendDense("", data.outputs, v1::ACTIVATION_IDENTITY, model);
}

void ExpandMlp(const v1::MlpTemplate& mlp, const TemplateData& data, v1::Model& model,
               FieldViolations& violations) {
  CheckActivation("activation", Or(mlp.activation(), v1::ACTIVATION_RELU), violations);
  CheckDropoutRate("dropout", mlp.dropout(), violations);
  if (mlp.units_size() > kMaxMlpLayers) {
    violations.Add("units", absl::StrCat("has ", mlp.units_size(), " numbers; at most ", kMaxMlpLayers,
                                         " hidden layers are taken"));
    return;
  }
  if (mlp.has_embed_categories()) {
    *model.add_layers()->mutable_embed_categories() = mlp.embed_categories();
  }
  const auto append = [&](int64_t units) {
    AppendDense("", units, Or(mlp.activation(), v1::ACTIVATION_RELU), model);
    AppendDropout("", mlp.dropout(), model);
  };
  for (int i = 0; i < mlp.units_size(); ++i) {
    const int64_t units = mlp.units(i);
    if (units < 1 || units > kMaxUnits) {
      violations.Add(absl::StrCat("units[", i, "]"),
                     absl::StrCat("is ", units, "; it must be from 1 to ", kMaxUnits));
    }
    append(units);
  }
  if (mlp.units().empty()) {
    append(128);
    append(64);
  }
  AppendDense("", data.outputs, v1::ACTIVATION_IDENTITY, model);
}

void ExpandMatlabCifar(const v1::MatlabCifarTemplate& matlab, const TemplateData& data, v1::Model& model,
                       FieldViolations& violations) {
  const int64_t width = CountOr("width", matlab.width(), 32, kMaxWidth, violations);
  const int64_t depth = CountOr("depth", matlab.depth(), 4, kMaxDepth, violations);
  for (int block = 0; block < 3; ++block) {
    if (block > 0) AppendMaxPool("", 2, 2, 0, model);
    for (int64_t i = 0; i < depth; ++i) {
      AppendConvolution("", {.filters = width << block, .kernel = 3, .padding = 1}, model);
      AppendBatchNorm("", v1::ACTIVATION_RELU, model);
    }
  }
  model.add_layers()->mutable_global_average_pool2d();
  AppendDense("", data.outputs, v1::ACTIVATION_IDENTITY, model);
}

}  // namespace tandem
