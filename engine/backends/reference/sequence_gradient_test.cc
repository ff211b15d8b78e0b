// Gradient rules of ops on sequences, against central differences.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/backends/reference/gradient_check.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/layer_norm.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/positions.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

class SequenceGradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(SequenceGradientTest, IsWhatCentralDifferencesSay) { ExpectGradientIsWhatDifferencesSay(GetParam()); }

GradientCase Gathering(const std::string& name, Shape tokens, int64_t vocabulary, int64_t padding) {
  return {"gather_rows " + name, [=](CaseGraph& g) {
            // No index may be the row without a gradient, because a difference would see it.
            const ValueId weight = g.Input("weight", {vocabulary, 3});
            const ValueId indices = g.Tokens("indices", tokens, padding < 0 ? vocabulary : padding);
            return g.AddHidden(std::make_shared<GatherRowsOp>(padding), {weight, indices})[0];
          }};
}

GradientCase LayerNormalization(const std::string& name, Shape x, int dimensions, double epsilon) {
  return {"layer_norm " + name, [=](CaseGraph& g) {
            const Shape weight = x.From(-dimensions);
            return g.AddHidden(std::make_shared<LayerNormOp>(dimensions, epsilon),
                               {g.Input("x", x), g.Input("weight", weight), g.Input("bias", weight)})[0];
          }};
}

GradientCase Product(const std::string& name, Shape a, Shape b, bool transpose_a, bool transpose_b) {
  return {"matmul " + name, [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<MatmulOp>(transpose_a, transpose_b),
                               {g.Input("a", a), g.Input("b", b)})[0];
          }};
}

GradientCase Attention(const std::string& name, Shape scores, bool causal) {
  return {"attention_softmax " + name, [=](CaseGraph& g) {
            return g.AddHidden(std::make_shared<AttentionSoftmaxOp>(0.4, causal),
                               {g.Input("scores", scores, -3, 3)})[0];
          }};
}

// Differentiates the output `output`: every h, the last h or the last c.
GradientCase LongShortTermMemory(const std::string& name, int output, bool reverse) {
  return {"lstm " + name, [=](CaseGraph& g) {
            return g.AddHidden(
                std::make_shared<LstmOp>(reverse),
                {g.Input("projected", {2, 3, 12}), g.Input("h0", {2, 3}), g.Input("c0", {2, 3}),
                 g.Input("weight", {12, 3}), g.Input("bias", {12})})[output];
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Embedding, SequenceGradientTest,
    testing::Values(
        Gathering("repeated", {3, 5}, 4, GatherRowsOp::kNoPadding), Gathering("padded", {7}, 5, 3),
        GradientCase{"add_to_each",
                     [](CaseGraph& g) {
                       return g.AddHidden(std::make_shared<AddToEachOp>(),
                                          {g.Input("x", {3, 5, 2}), g.Input("each", {5, 2})})[0];
                     }},
        GradientCase{
            "add_to_each of one sample",
            [](CaseGraph& g) {
              const ValueId each = g.Input("each", {5, 2});
              return g.AddHidden(std::make_shared<AddToEachOp>(), {g.Input("x", {1, 5, 2}), each})[0];
            }},
        GradientCase{"add_sinusoids", [](CaseGraph& g) {
                       return g.AddHidden(std::make_shared<AddSinusoidsOp>(), {g.Input("x", {2, 3, 5})})[0];
                     }}));

INSTANTIATE_TEST_SUITE_P(LayerNorm, SequenceGradientTest,
                         testing::Values(LayerNormalization("of positions", {2, 3, 7}, 1, 1e-5),
                                         LayerNormalization("of images", {3, 2, 3, 2}, 3, 1e-5),
                                         LayerNormalization("of everything", {5}, 1, 0.5)));

INSTANTIATE_TEST_SUITE_P(Matmul, SequenceGradientTest,
                         testing::Values(Product("plain", {2, 3, 4, 5}, {2, 3, 5, 2}, false, false),
                                         Product("first transposed", {3, 5, 4}, {3, 5, 2}, true, false),
                                         Product("second transposed", {3, 4, 5}, {3, 2, 5}, false, true),
                                         Product("both transposed", {5, 4}, {2, 5}, true, true)));

INSTANTIATE_TEST_SUITE_P(
    Attention, SequenceGradientTest,
    testing::Values(
        Attention("full", {2, 3, 5}, false), Attention("causal", {2, 4, 4}, true),
        Attention("causal, more keys than queries", {3, 5}, true),
        Attention("causal, more queries than keys", {5, 3}, true),
        GradientCase{"heads",
                     [](CaseGraph& g) {
                       const std::vector<ValueId> parts =
                           g.AddHidden(std::make_shared<SplitHeadsOp>(3, 2), {g.Input("x", {2, 3, 12})});
                       return g.AddHidden(std::make_shared<MergeHeadsOp>(), {parts[2], parts[0]})[0];
                     }},
        GradientCase{"whole", [](CaseGraph& g) {
                       const ValueId projected =
                           g.AddHidden(std::make_shared<LinearOp>(),
                                       {g.Input("x", {2, 4, 6}), g.Input("weight", {18, 6})})[0];
                       const std::vector<ValueId> qkv =
                           g.AddHidden(std::make_shared<SplitHeadsOp>(3, 2), {projected});
                       const ValueId scores =
                           g.AddHidden(std::make_shared<MatmulOp>(false, true), {qkv[0], qkv[1]})[0];
                       const ValueId weights = g.AddHidden(
                           std::make_shared<AttentionSoftmaxOp>(1 / std::sqrt(3.0), true), {scores})[0];
                       const ValueId heads = g.AddHidden(std::make_shared<MatmulOp>(), {weights, qkv[2]})[0];
                       return g.AddHidden(std::make_shared<MergeHeadsOp>(), {heads})[0];
                     }}));

INSTANTIATE_TEST_SUITE_P(Lstm, SequenceGradientTest,
                         testing::Values(LongShortTermMemory("of every h", 0, false),
                                         LongShortTermMemory("of every h, reverse", 0, true),
                                         LongShortTermMemory("of the last h", 1, false),
                                         LongShortTermMemory("of the last h, reverse", 1, true),
                                         LongShortTermMemory("of the last c", 2, false)));

}  // namespace
}  // namespace tandem
