#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/layers/templates/templates.h"

namespace tandem {
namespace {

constexpr int64_t kMaxVggWidth = 1024;
constexpr int64_t kMaxVggUnits = 65536;
constexpr int64_t kPool = 0;
// The channels of each convolution, relative to the first, and pools.
constexpr int64_t kVgg11[] = {1, kPool, 2, kPool, 4, 4, kPool, 8, 8, kPool, 8, 8, kPool};

}  // namespace

// Simonyan and Zisserman 2015, configuration A. The names are torchvision's, so that "features.3" is its
// fourth layer. In torchvision an activation is a layer. Here it is a part of the layer before it.
void ExpandVgg11(const v1::VggTemplate& vgg, const TemplateData& data, v1::Model& model,
                 FieldViolations& violations) {
  const int64_t width = CountOr("width", vgg.width(), 64, kMaxVggWidth, violations);
  const int64_t units = CountOr("units", vgg.units(), 4096, kMaxVggUnits, violations);
  const double dropout = vgg.has_dropout() ? vgg.dropout() : 0.5;
  CheckDropoutRate("dropout", dropout, violations);
  int index = 0;
  const auto next = [&] { return absl::StrCat("features.", index++); };
  int64_t size = std::min(data.sample[1], data.sample[2]);
  for (const int64_t channels : kVgg11) {
    if (channels == kPool) {
      const std::string name = next();
      // Small samples cannot be halved any more.
      if (size >= 2) AppendMaxPool(name, 2, 2, 0, model);
      size /= 2;
      continue;
    }
    v1::Conv2d& conv =
        AppendConvolution(next(), {.filters = width * channels, .kernel = 3, .padding = 1}, model);
    *conv.mutable_weight_initializer() = HeNormal();
    if (vgg.batch_norm()) {
      AppendBatchNorm(next(), v1::ACTIVATION_RELU, model);
    } else {
      conv.set_activation(v1::ACTIVATION_RELU);
    }
    ++index;
  }
  AppendDense("classifier.0", units, v1::ACTIVATION_RELU, model);
  AppendDropout("classifier.2", dropout, model);
  AppendDense("classifier.3", units, v1::ACTIVATION_RELU, model);
  AppendDropout("classifier.5", dropout, model);
  AppendDense("classifier.6", data.outputs, v1::ACTIVATION_IDENTITY, model);
}

}  // namespace tandem
