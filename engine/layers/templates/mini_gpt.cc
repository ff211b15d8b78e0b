#include <string>

#include "absl/strings/str_cat.h"
#include "engine/layers/templates/templates.h"

namespace tandem {
namespace {

constexpr int64_t kMaxGptDepth = 256;
constexpr int64_t kMaxGptWidth = 16384;
// The width of a feed-forward layer, in embeddings.
constexpr int64_t kFeedForward = 4;

// The initial distribution of GPT-2.
v1::Initializer SmallNormal() {
  v1::Initializer initializer;
  initializer.mutable_normal()->set_standard_deviation(0.02);
  return initializer;
}

void AppendPerPosition(const std::string& name, int64_t units, v1::Activation activation,
                       google::protobuf::RepeatedPtrField<v1::Layer>& layers) {
  v1::Layer& layer = *layers.Add();
  layer.set_name(name);
  v1::Dense& dense = *layer.mutable_dense();
  dense.set_units(units);
  dense.set_activation(activation);
  dense.set_per_position(true);
  *dense.mutable_weight_initializer() = SmallNormal();
}

void AppendNorm(const std::string& name, google::protobuf::RepeatedPtrField<v1::Layer>& layers) {
  v1::Layer& layer = *layers.Add();
  layer.set_name(name);
  layer.mutable_layer_norm();
}

void AppendDropoutTo(double rate, google::protobuf::RepeatedPtrField<v1::Layer>& layers) {
  if (rate == 0) return;
  v1::Layer& layer = *layers.Add();
  layer.set_name("dropout");
  layer.mutable_dropout()->set_rate(rate);
}

}  // namespace

// Radford et al. 2019, with normalisation before each part.
void ExpandMiniGpt(const v1::MiniGptTemplate& gpt, const TemplateData& data, v1::Model& model,
                   FieldViolations& violations) {
  const int64_t depth = CountOr("depth", gpt.depth(), 4, kMaxGptDepth, violations);
  const int64_t width = CountOr("width", gpt.width(), 128, kMaxGptWidth, violations);
  const int64_t heads = CountOr("heads", gpt.heads(), 4, kMaxGptWidth, violations);
  CheckDropoutRate("dropout", gpt.dropout(), violations);
  if (width % heads != 0) {
    violations.Add("heads", absl::StrCat("is ", heads, "; it must divide the width, ", width));
  }
  v1::Layer& embedding = *model.add_layers();
  embedding.set_name("token_embedding");
  embedding.mutable_embedding()->set_vocabulary_size(data.outputs);
  embedding.mutable_embedding()->set_dimension(width);
  *embedding.mutable_embedding()->mutable_weight_initializer() = SmallNormal();
  v1::Layer& positions = *model.add_layers();
  positions.set_name("position_embedding");
  positions.mutable_positional_embedding();
  AppendDropoutTo(gpt.dropout(), *model.mutable_layers());
  for (int64_t i = 1; i <= depth; ++i) {
    v1::Layer& attention = *model.add_layers();
    attention.set_name(absl::StrCat("block_", i, ".attention"));
    auto& attending = *attention.mutable_residual()->mutable_layers();
    AppendNorm("norm", attending);
    v1::Layer& heads_layer = *attending.Add();
    heads_layer.set_name("heads");
    v1::MultiHeadAttention& multi_head = *heads_layer.mutable_multi_head_attention();
    multi_head.set_heads(heads);
    multi_head.set_causal(true);
    *multi_head.mutable_weight_initializer() = SmallNormal();
    *multi_head.mutable_output_weight_initializer() = SmallNormal();
    AppendDropoutTo(gpt.dropout(), attending);

    v1::Layer& feed_forward = *model.add_layers();
    feed_forward.set_name(absl::StrCat("block_", i, ".feed_forward"));
    auto& feeding = *feed_forward.mutable_residual()->mutable_layers();
    AppendNorm("norm", feeding);
    AppendPerPosition("wide", kFeedForward * width, v1::ACTIVATION_GELU, feeding);
    AppendPerPosition("narrow", width, v1::ACTIVATION_IDENTITY, feeding);
    AppendDropoutTo(gpt.dropout(), feeding);
  }
  AppendNorm("norm", *model.mutable_layers());
  AppendPerPosition("output", data.outputs, v1::ACTIVATION_IDENTITY, *model.mutable_layers());
}

}  // namespace tandem
