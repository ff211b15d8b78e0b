#include "engine/layers/embedding.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/positions.h"
#include "engine/layers/fields.h"

namespace tandem {
namespace {

constexpr double kDefaultTokenDeviation = 1;
constexpr double kDefaultPositionDeviation = 0.02;

class EmbeddingLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "embedding"; }
  bool reads_tokens() const override { return true; }

  void FillDefaults(v1::Layer* layer) const override {
    FillInitializer(Normal(kDefaultTokenDeviation), layer->mutable_embedding()->mutable_weight_initializer());
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::Embedding& embedding = layer.embedding();
    FieldViolations violations;
    CheckExtent("embedding.vocabulary_size", embedding.vocabulary_size(), 1, violations);
    CheckExtent("embedding.dimension", embedding.dimension(), 1, violations);
    violations.AddAll("embedding.weight_initializer", CheckInitializer(embedding.weight_initializer()));
    if (embedding.has_padding_token() &&
        (embedding.padding_token() < 0 || embedding.padding_token() >= embedding.vocabulary_size())) {
      violations.Add("embedding.padding_token",
                     absl::StrCat("is ", embedding.padding_token(), "; it must be from 0 to below ",
                                  embedding.vocabulary_size(), ", the vocabulary's size"));
    }
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& layer, const Shape& input) const override {
    if (input.rank() != 1) {
      return FieldError("embedding", absl::StrCat("takes tokens [length], not ", input.ToString()));
    }
    return Shape({input[0], layer.embedding().dimension()});
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::Embedding& embedding = layer.embedding();
    const Fans fans{.in = static_cast<double>(embedding.vocabulary_size()),
                    .out = static_cast<double>(embedding.dimension())};
    const ValueId weight = AddParameter(context, layer.name(), "weight",
                                        Shape({embedding.vocabulary_size(), embedding.dimension()}),
                                        embedding.weight_initializer(), fans);
    if (embedding.has_padding_token()) context.parameters.back().zero_row = embedding.padding_token();
    const int64_t padding =
        embedding.has_padding_token() ? embedding.padding_token() : GatherRowsOp::kNoPadding;
    return context.graph.Add(std::make_shared<GatherRowsOp>(padding), {weight, input});
  }
};

class PositionalEmbeddingLayerKind final : public OneInputLayerKind {
 public:
  absl::string_view field() const override { return "positional_embedding"; }

  void FillDefaults(v1::Layer* layer) const override {
    v1::PositionalEmbedding* embedding = layer->mutable_positional_embedding();
    if (embedding->kind() == v1::POSITIONAL_EMBEDDING_KIND_UNSPECIFIED) {
      embedding->set_kind(v1::POSITIONAL_EMBEDDING_KIND_LEARNED);
    }
    if (embedding->kind() == v1::POSITIONAL_EMBEDDING_KIND_LEARNED) {
      FillInitializer(Normal(kDefaultPositionDeviation), embedding->mutable_weight_initializer());
    }
  }

  absl::Status Check(const v1::Layer& layer) const override {
    const v1::PositionalEmbedding& embedding = layer.positional_embedding();
    FieldViolations violations;
    if (!v1::PositionalEmbeddingKind_IsValid(embedding.kind())) {
      violations.Add("positional_embedding.kind", absl::StrCat("is ", static_cast<int>(embedding.kind()),
                                                               ", which is no kind of positional embedding"));
    }
    if (embedding.kind() == v1::POSITIONAL_EMBEDDING_KIND_SINUSOIDAL && embedding.has_weight_initializer()) {
      violations.Add("positional_embedding.weight_initializer",
                     "is for learned vectors; sinusoidal ones have no weight, so leave it out");
    }
    violations.AddAll("positional_embedding.weight_initializer",
                      CheckInitializer(embedding.weight_initializer()));
    return violations.ToStatus();
  }

 private:
  absl::StatusOr<Shape> Infer(const v1::Layer& /*layer*/, const Shape& input) const override {
    TANDEM_RETURN_IF_ERROR(CheckVectors("positional_embedding", input));
    return input;
  }

  absl::StatusOr<ValueId> Build(const v1::Layer& layer, ValueId input, LayerContext& context) const override {
    const v1::PositionalEmbedding& embedding = layer.positional_embedding();
    if (embedding.kind() == v1::POSITIONAL_EMBEDDING_KIND_SINUSOIDAL) {
      return context.graph.Add(std::make_shared<AddSinusoidsOp>(), {input});
    }
    const Shape& shape = context.graph.value(input).shape;
    const Shape each({shape[1], shape[2]});
    const Fans fans{.in = static_cast<double>(each[0]), .out = static_cast<double>(each[1])};
    const ValueId weight =
        AddParameter(context, layer.name(), "weight", each, embedding.weight_initializer(), fans);
    return context.graph.Add(std::make_shared<AddToEachOp>(), {input, weight});
  }
};

}  // namespace

const LayerKind& EmbeddingKind() { return TheOnly<EmbeddingLayerKind>(); }

const LayerKind& PositionalEmbeddingKind() { return TheOnly<PositionalEmbeddingLayerKind>(); }

}  // namespace tandem
