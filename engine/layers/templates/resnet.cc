#include <string>

#include "absl/strings/str_cat.h"
#include "engine/layers/templates/templates.h"

namespace tandem {
namespace {

constexpr int64_t kMaxResNetWidth = 1024;
// Samples with fewer rows would vanish before the last stage.
constexpr int64_t kSmallHeight = 64;
// The output channels of a bottleneck block, in inner channels.
constexpr int64_t kBottleneckExpansion = 4;

// Appends a convolution of residual networks. It has no bias, because batch_norm has its own.
void AppendPlain(const std::string& name, const ConvolutionShape& shape, v1::Model& model) {
  v1::Conv2d& conv = AppendConvolution(name, shape, model);
  conv.set_use_bias(false);
  *conv.mutable_weight_initializer() = HeNormal();
}

// Appends the part of a block before the sum. Its last layer has no activation.
std::string AppendMainPath(const std::string& block, int64_t width, int64_t stride, bool bottleneck,
                           v1::Model& model) {
  const auto conv = [&](int i) { return absl::StrCat(block, ".conv", i); };
  const auto norm = [&](int i) { return absl::StrCat(block, ".bn", i); };
  if (!bottleneck) {
    AppendPlain(conv(1), {.filters = width, .kernel = 3, .stride = stride, .padding = 1}, model);
    AppendBatchNorm(norm(1), v1::ACTIVATION_RELU, model);
    AppendPlain(conv(2), {.filters = width, .kernel = 3, .padding = 1}, model);
    AppendBatchNorm(norm(2), v1::ACTIVATION_IDENTITY, model);
    return norm(2);
  }
  AppendPlain(conv(1), {.filters = width, .kernel = 1}, model);
  AppendBatchNorm(norm(1), v1::ACTIVATION_RELU, model);
  AppendPlain(conv(2), {.filters = width, .kernel = 3, .stride = stride, .padding = 1}, model);
  AppendBatchNorm(norm(2), v1::ACTIVATION_RELU, model);
  AppendPlain(conv(3), {.filters = width * kBottleneckExpansion, .kernel = 1}, model);
  AppendBatchNorm(norm(3), v1::ACTIVATION_IDENTITY, model);
  return norm(3);
}

}  // namespace

// He et al. 2016, as in torchvision (https://pytorch.org/vision): the second convolution of a bottleneck
// block has the stride. The names are torchvision's, so that its weights can be loaded.
void ExpandResnet(const v1::ResnetTemplate& resnet, const ResnetDepth& depth, const TemplateData& data,
                  v1::Model& model, FieldViolations& violations) {
  const int64_t width = CountOr("width", resnet.width(), 64, kMaxResNetWidth, violations);
  if (!v1::ResnetTemplate::Stem_IsValid(resnet.stem())) {
    violations.Add("stem", absl::StrCat("is ", static_cast<int>(resnet.stem()), ", which is no stem"));
  }
  const bool small = resnet.stem() == v1::ResnetTemplate::STEM_SMALL ||
                     (resnet.stem() == v1::ResnetTemplate::STEM_UNSPECIFIED && data.sample[1] < kSmallHeight);
  AppendPlain("conv1",
              small ? ConvolutionShape{.filters = width, .kernel = 3, .padding = 1}
                    : ConvolutionShape{.filters = width, .kernel = 7, .stride = 2, .padding = 3},
              model);
  AppendBatchNorm("bn1", v1::ACTIVATION_RELU, model);
  std::string last = "bn1";
  if (!small) {
    last = "maxpool";
    AppendMaxPool(last, 3, 2, 1, model);
  }
  int64_t channels = width;
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t inner = width << stage;
    const int64_t outer = depth.bottleneck ? inner * kBottleneckExpansion : inner;
    for (int i = 0; i < depth.blocks[stage]; ++i) {
      const std::string block = absl::StrCat("layer", stage + 1, ".", i);
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      const std::string main = AppendMainPath(block, inner, stride, depth.bottleneck, model);
      std::string shortcut = last;
      if (stride != 1 || channels != outer) {
        const std::string conv = absl::StrCat(block, ".downsample.0");
        AppendPlain(conv, {.filters = outer, .kernel = 1, .stride = stride}, model);
        model.mutable_layers(model.layers_size() - 1)->add_inputs(last);
        shortcut = absl::StrCat(block, ".downsample.1");
        AppendBatchNorm(shortcut, v1::ACTIVATION_IDENTITY, model);
      }
      last = absl::StrCat(block, ".add");
      v1::Layer& sum = *model.add_layers();
      sum.set_name(last);
      sum.add_inputs(main);
      sum.add_inputs(shortcut);
      sum.mutable_add()->set_activation(v1::ACTIVATION_RELU);
      channels = outer;
    }
  }
  v1::Layer& pool = *model.add_layers();
  pool.set_name("avgpool");
  pool.mutable_global_average_pool2d();
  AppendDense("fc", data.outputs, v1::ACTIVATION_IDENTITY, model);
}

}  // namespace tandem
