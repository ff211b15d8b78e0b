#ifndef TANDEM_ENGINE_LAYERS_TEMPLATES_TEMPLATES_H_
#define TANDEM_ENGINE_LAYERS_TEMPLATES_TEMPLATES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/base/field_violations.h"
#include "engine/layers/model_template.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// A function for each family of networks. It checks its numbers, with fields relative to its message. It
// appends the layers to `model`, whose input has its shape, data.sample. After a violation the appended
// layers do not matter. Image networks get samples [channels, height, width].

void ExpandLenet(const v1::LenetTemplate& lenet, const TemplateData& data, v1::Model& model,
                 FieldViolations& violations);
void ExpandMlp(const v1::MlpTemplate& mlp, const TemplateData& data, v1::Model& model,
               FieldViolations& violations);
// `blocks` are the residual blocks of the four stages. Bottleneck blocks have three convolutions.
struct ResnetDepth {
  int blocks[4];
  bool bottleneck;
};
void ExpandResnet(const v1::ResnetTemplate& resnet, const ResnetDepth& depth, const TemplateData& data,
                  v1::Model& model, FieldViolations& violations);
void ExpandVgg11(const v1::VggTemplate& vgg, const TemplateData& data, v1::Model& model,
                 FieldViolations& violations);
void ExpandMatlabCifar(const v1::MatlabCifarTemplate& matlab, const TemplateData& data, v1::Model& model,
                       FieldViolations& violations);
// `data.sample` is [length], `data.outputs` the vocabulary.
void ExpandMiniGpt(const v1::MiniGptTemplate& gpt, const TemplateData& data, v1::Model& model,
                   FieldViolations& violations);

// Parts that several networks share. An empty name gives the layer its default name.

// A square convolution.
struct ConvolutionShape {
  int64_t filters;
  int64_t kernel;
  int64_t stride = 1;
  int64_t padding = 0;
};
v1::Conv2d& AppendConvolution(absl::string_view name, const ConvolutionShape& shape, v1::Model& model);
void AppendBatchNorm(absl::string_view name, v1::Activation activation, v1::Model& model);
void AppendMaxPool(absl::string_view name, int64_t size, int64_t stride, int64_t padding, v1::Model& model);
v1::Dense& AppendDense(absl::string_view name, int64_t units, v1::Activation activation, v1::Model& model);
// Appends nothing if the rate is 0.
void AppendDropout(absl::string_view name, double rate, v1::Model& model);

// Returns Kaiming's normal initializer, for networks of ReLU layers.
v1::Initializer HeNormal();

// Returns `value`, or `otherwise` if it is 0, which means a missing field. Adds a violation of `field` if the
// result is not in [1, most].
int64_t CountOr(absl::string_view field, int64_t value, int64_t otherwise, int64_t most,
                FieldViolations& violations);
// Checks that `rate` is in [0, 1).
void CheckDropoutRate(absl::string_view field, double rate, FieldViolations& violations);

}  // namespace tandem

#endif  // TANDEM_ENGINE_LAYERS_TEMPLATES_TEMPLATES_H_
