#include "engine/layers/model.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/initializers/initializer.h"
#include "engine/layers/blocks.h"
#include "engine/layers/fields.h"
#include "engine/layers/layer_kind.h"
#include "engine/layers/lstm.h"
#include "engine/layers/sequence.h"
#include "engine/layers/tokens.h"

namespace tandem {
namespace {

absl::optional<Shape> CheckInputShape(const v1::Model& model, FieldViolations& violations) {
  const Shape shape = InputShapeOf(model);
  FieldViolations found;
  if (shape.rank() < 1 || shape.rank() > 3) {
    constexpr char kGive[] =
        "give [channels, height, width], [features], [length] for tokens or [length, features]";
    found.Add("input.shape", shape.rank() == 0 ? absl::StrCat("is missing; ", kGive)
                                               : absl::StrCat("is ", shape.ToString(), "; ", kGive));
  }
  for (int i = 0; i < shape.rank(); ++i) {
    CheckExtent(absl::StrCat("input.shape[", i, "]"), shape[i], 1, found);
  }
  if (found.empty() && shape.elements() > kMaxSampleElements) {
    found.Add("input.shape", absl::StrCat(shape.ToString(), " is too large: a sample may have ",
                                          kMaxSampleElements, " elements"));
  }
  violations.AddAll("", found.ToStatus());
  if (!found.empty()) return absl::nullopt;
  return shape;
}

// Checks that no two layers, inner layers included, have parameters with the same full name.
void CheckFullNames(const Layers& layers, const std::string& prefix, const std::string& path,
                    std::map<std::string, std::string>& paths, FieldViolations& violations) {
  for (int i = 0; i < layers.size(); ++i) {
    const v1::Layer& layer = layers[i];
    const std::string field = absl::StrCat(path, "[", i, "]");
    const std::string name = absl::StrCat(prefix, layer.name());
    const auto claim = [&](const std::string& claimed) {
      const auto [first, fresh] = paths.emplace(claimed, field);
      if (fresh || first->second == field) return true;
      violations.Add(absl::StrCat(field, ".name"),
                     absl::StrCat("makes parameters begin with \"", claimed, ".\", as those of ",
                                  first->second, " do; rename one of them"));
      return false;
    };
    if (!claim(name)) return;
    for (const std::string& inner : FindLayerKind(layer.kind_case())->InnerNames(layer)) {
      if (!claim(absl::StrCat(name, ".", inner))) return;
    }
    ForEachBlock(layer, [&](const Layers& block, const std::string& block_path, const std::string& suffix) {
      CheckFullNames(block, absl::StrCat(name, ".", suffix), absl::StrCat(field, ".", block_path), paths,
                     violations);
    });
  }
}

// Gives an lstm layer without a bias_initializer the default. The default follows from the layer's own
// weights.
void KeepBiases(v1::Layer* layer) {
  v1::Layer filled = *layer;
  LstmKind().FillDefaults(&filled);
  *layer->mutable_lstm()->mutable_bias_initializer() = filled.lstm().bias_initializer();
}

}  // namespace

void SetWeightInitializers(const v1::Initializer& initializer, bool replaces, Layers* layers) {
  if (initializer.kind_case() == v1::Initializer::KIND_NOT_SET) return;
  const auto set = [&](v1::Initializer* own) {
    if (replaces || own->kind_case() == v1::Initializer::KIND_NOT_SET) *own = initializer;
  };
  for (v1::Layer& layer : *layers) {
    switch (layer.kind_case()) {
      case v1::Layer::kConv2D:
        set(layer.mutable_conv2d()->mutable_weight_initializer());
        break;
      case v1::Layer::kConvTranspose2D:
        set(layer.mutable_conv_transpose2d()->mutable_weight_initializer());
        break;
      case v1::Layer::kDense:
        set(layer.mutable_dense()->mutable_weight_initializer());
        break;
      case v1::Layer::kLstm:
        KeepBiases(&layer);
        set(layer.mutable_lstm()->mutable_weight_initializer());
        set(layer.mutable_lstm()->mutable_recurrent_initializer());
        break;
      case v1::Layer::kMultiHeadAttention:
        set(layer.mutable_multi_head_attention()->mutable_weight_initializer());
        set(layer.mutable_multi_head_attention()->mutable_output_weight_initializer());
        break;
      case v1::Layer::kResidual:
        SetWeightInitializers(initializer, replaces, layer.mutable_residual()->mutable_layers());
        SetWeightInitializers(initializer, replaces, layer.mutable_residual()->mutable_shortcut());
        break;
      case v1::Layer::kRepeat:
        SetWeightInitializers(initializer, replaces, layer.mutable_repeat()->mutable_layers());
        break;
      default:
        break;
    }
  }
}

void FillModelDefaults(v1::Model* model) {
  if (model->has_weight_initializer()) {
    FillInitializerDefaults(model->mutable_weight_initializer());
    // CheckModel reports a wrong initializer once, not for each layer.
    if (CheckInitializer(model->weight_initializer()).ok()) {
      SetWeightInitializers(model->weight_initializer(), /*replaces=*/false, model->mutable_layers());
    }
  }
  FillSequence(model->mutable_layers());
}

Shape InputShapeOf(const v1::Model& model) {
  return Shape(std::vector<int64_t>(model.input().shape().begin(), model.input().shape().end()));
}

absl::StatusOr<std::vector<Shape>> CheckModel(const v1::Model& model) {
  FieldViolations violations;
  const absl::optional<Shape> sample = CheckInputShape(model, violations);
  if (model.has_template_()) violations.Add("template", "is not expanded into layers");
  if (model.has_weight_initializer()) {
    violations.AddAll("weight_initializer", CheckInitializer(model.weight_initializer()));
  }
  if (model.layers().empty()) violations.Add("layers", "is empty; give at least one layer");
  if (CountLayers(model.layers()) > kMaxLayers) {
    violations.Add("layers",
                   absl::StrCat("has ",
                                model.layers_size() > kMaxLayers
                                    ? absl::StrCat(model.layers_size(), " layers")
                                    : absl::StrCat("more than ", kMaxLayers,
                                                   " layers with those within blocks, repetitions counted"),
                                "; at most ", kMaxLayers, " are taken"));
    return violations.ToStatus();
  }
  std::vector<absl::optional<Shape>> shapes = CheckSequence(model.layers(), "layers", sample, violations);
  CheckTokens(model.layers(), violations);
  std::map<std::string, std::string> paths;
  if (violations.empty()) CheckFullNames(model.layers(), "", "layers", paths, violations);
  TANDEM_RETURN_IF_ERROR(violations.ToStatus());
  std::vector<Shape> result;
  for (absl::optional<Shape>& shape : shapes) result.push_back(*std::move(shape));
  return result;
}

absl::StatusOr<Network> BuildModel(const v1::Model& model, ValueId input, DType dtype, bool training,
                                   Graph& graph, const BuildOptions& options) {
  Network network;
  LayerContext context{.graph = graph,
                       .dtype = dtype,
                       .training = training,
                       .parameters = network.parameters,
                       .statistics = network.statistics,
                       .random = options.random,
                       .batch = options.batch,
                       .is_frozen = options.is_frozen == nullptr ? nullptr : &options.is_frozen,
                       .trace = options.trace};
  TANDEM_ASSIGN_OR_RETURN(network.output, BuildSequence(model.layers(), "layers", input, context));
  return network;
}

}  // namespace tandem
