#include "absl/strings/str_cat.h"
#include "engine/layers/templates/templates.h"

namespace tandem {
namespace {

v1::Layer& AppendLayer(absl::string_view name, v1::Model& model) {
  v1::Layer& layer = *model.add_layers();
  layer.set_name(std::string(name));
  return layer;
}

}  // namespace

v1::Conv2d& AppendConvolution(absl::string_view name, const ConvolutionShape& shape, v1::Model& model) {
  v1::Conv2d& conv = *AppendLayer(name, model).mutable_conv2d();
  conv.set_filters(shape.filters);
  conv.add_kernel(shape.kernel);
  if (shape.stride != 1) conv.add_stride(shape.stride);
  if (shape.padding != 0) conv.add_padding(shape.padding);
  return conv;
}

void AppendBatchNorm(absl::string_view name, v1::Activation activation, v1::Model& model) {
  AppendLayer(name, model).mutable_batch_norm()->set_activation(activation);
}

void AppendMaxPool(absl::string_view name, int64_t size, int64_t stride, int64_t padding, v1::Model& model) {
  v1::MaxPool2d& pool = *AppendLayer(name, model).mutable_max_pool2d();
  pool.add_size(size);
  if (stride != size) pool.add_stride(stride);
  if (padding != 0) pool.add_padding(padding);
}

v1::Dense& AppendDense(absl::string_view name, int64_t units, v1::Activation activation, v1::Model& model) {
  v1::Dense& dense = *AppendLayer(name, model).mutable_dense();
  dense.set_units(units);
  dense.set_activation(activation);
  return dense;
}

void AppendDropout(absl::string_view name, double rate, v1::Model& model) {
  if (rate == 0) return;
  AppendLayer(name, model).mutable_dropout()->set_rate(rate);
}

v1::Initializer HeNormal() {
  v1::Initializer initializer;
  initializer.mutable_he()->set_distribution(v1::INITIALIZER_DISTRIBUTION_NORMAL);
  return initializer;
}

int64_t CountOr(absl::string_view field, int64_t value, int64_t otherwise, int64_t most,
                FieldViolations& violations) {
  if (value == 0) return otherwise;
  if (value >= 1 && value <= most) return value;
  violations.Add(field, absl::StrCat("is ", value, "; it must be from 1 to ", most));
  return otherwise;
}

void CheckDropoutRate(absl::string_view field, double rate, FieldViolations& violations) {
  if (rate >= 0 && rate < 1) return;
  violations.Add(field, absl::StrCat("is ", rate, "; it must be from 0 to below 1"));
}

}  // namespace tandem
