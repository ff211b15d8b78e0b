#include "engine/backend/sequence_cases.h"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/layer_norm.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/positions.h"

namespace tandem {
namespace {

OpCase Gathering(Shape tokens, int64_t vocabulary, int64_t width, int64_t padding) {
  return {absl::StrCat("gather_rows ", tokens.ToString(), " of ", vocabulary, " rows of ", width),
          [=](CaseGraph& g) {
            const ValueId weight = g.Variable("weight", {vocabulary, width});
            const ValueId indices = g.Tokens("indices", tokens, vocabulary);
            const ValueId y = g.Add(std::make_shared<GatherRowsOp>(padding), {weight, indices})[0];
            const ValueId grad_y = g.Input("grad_y", g.graph().value(y).shape);
            g.Add(std::make_shared<GatherRowsGradOp>(vocabulary, padding), {indices, grad_y});
          }};
}

OpCase Positions(Shape x) {
  return {absl::StrCat("positions ", x.ToString()), [=](CaseGraph& g) {
            const ValueId input = g.Input("x", x);
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(2), {input})[0];
            const ValueId weight = g.Variable("weight", {x[1], x[2]});
            const ValueId y = g.AddHidden(std::make_shared<AddToEachOp>(), {hidden, weight})[0];
            g.Add(std::make_shared<AddSinusoidsOp>(), {y});
            g.Add(std::make_shared<SumOfEachOp>(), {input});
          }};
}

OpCase LayerNormalization(Shape x, int dimensions, double epsilon) {
  return {absl::StrCat("layer_norm ", x.ToString(), " over ", dimensions), [=](CaseGraph& g) {
            const Shape weight = x.From(-dimensions);
            const ValueId input = g.Input("x", x, -1, 3);
            const ValueId scale = g.Variable("weight", weight);
            const std::vector<ValueId> outputs = g.Add(std::make_shared<LayerNormOp>(dimensions, epsilon),
                                                       {input, scale, g.Variable("bias", weight)});
            g.Add(std::make_shared<LayerNormGradOp>(dimensions, epsilon),
                  {input, g.Input("grad_y", x), scale, outputs[1], outputs[2]});
            // Without its own weight and bias.
            const ValueId ones = g.graph().AddConstant(1, g.dtype(), weight);
            const ValueId zeros = g.graph().AddConstant(0, g.dtype(), weight);
            g.Add(std::make_shared<LayerNormOp>(dimensions, epsilon), {input, ones, zeros});
          }};
}

OpCase Heads(Shape x, int64_t parts, int64_t heads) {
  return {absl::StrCat("split_heads ", x.ToString(), " parts ", parts, " heads ", heads), [=](CaseGraph& g) {
            const std::vector<ValueId> split =
                g.Add(std::make_shared<SplitHeadsOp>(parts, heads), {g.Input("x", x)});
            g.Add(std::make_shared<MergeHeadsOp>(), split);
            g.Add(std::make_shared<MergeHeadsOp>(), {split.back(), split.front()});
          }};
}

// A product of [..., m, k] and [..., k, n], with each operand plain and transposed.
OpCase Product(std::vector<int64_t> leading, int64_t m, int64_t k, int64_t n) {
  return {absl::StrCat("matmul ", leading.size(), " leading, ", m, "x", k, "x", n), [=](CaseGraph& g) {
            const auto shape = [&](int64_t rows, int64_t columns) {
              std::vector<int64_t> extents = leading;
              extents.push_back(rows);
              extents.push_back(columns);
              return Shape(std::move(extents));
            };
            const ValueId a[] = {g.Input("a", shape(m, k)), g.Input("at", shape(k, m))};
            const ValueId b[] = {g.Input("b", shape(k, n)), g.Variable("bt", shape(n, k))};
            for (const bool transpose_a : {false, true}) {
              for (const bool transpose_b : {false, true}) {
                g.Add(std::make_shared<MatmulOp>(transpose_a, transpose_b), {a[transpose_a], b[transpose_b]});
              }
            }
          }};
}

OpCase AttentionWeights(Shape scores, bool causal, double range) {
  return {absl::StrCat("attention_softmax ", scores.ToString(), causal ? " causal" : "", " to ", range),
          [=](CaseGraph& g) {
            const double scale = 1 / std::sqrt(7.0);
            const ValueId x = g.Input("scores", scores, -range, range);
            const ValueId weights = g.Add(std::make_shared<AttentionSoftmaxOp>(scale, causal), {x})[0];
            const ValueId grads = g.Input("grads", scores);
            g.Add(std::make_shared<AttentionSoftmaxGradOp>(scale, causal), {weights, grads});
            // The op may write over its input.
            const ValueId hidden = g.AddHidden(std::make_shared<ScaleOp>(1), {x})[0];
            g.Add(std::make_shared<AttentionSoftmaxOp>(scale, causal), {hidden});
            const ValueId hidden_grads = g.AddHidden(std::make_shared<ScaleOp>(2), {grads})[0];
            g.Add(std::make_shared<AttentionSoftmaxGradOp>(scale, causal), {weights, hidden_grads});
          }};
}

// After a projection, as in a layer, so that layouts meet.
OpCase LongShortTermMemory(int64_t samples, int64_t length, int64_t features, int64_t units, bool reverse) {
  return {
      absl::StrCat("lstm ", samples, "x", length, "x", features, " to ", units, reverse ? " reverse" : ""),
      [=](CaseGraph& g) {
        const ValueId x = g.Input("x", {samples, length, features});
        const ValueId projected =
            g.AddHidden(std::make_shared<LinearOp>(), {x, g.Variable("weight_ih", {4 * units, features})})[0];
        const ValueId h0 = g.Input("h0", {samples, units});
        const ValueId c0 = g.Input("c0", {samples, units}, -3, 3);
        const ValueId weight = g.Variable("weight_hh", {4 * units, units});
        const std::vector<ValueId> y =
            g.Add(std::make_shared<LstmOp>(reverse),
                  {projected, h0, c0, weight, g.Variable("bias", {4 * units}, -2, 2)});
        const ValueId zeros = g.graph().AddConstant(0, g.dtype(), {samples, units});
        const std::vector<ValueId> grads =
            g.Add(std::make_shared<LstmGradOp>(reverse),
                  {weight, h0, c0, y[0], y[3], y[4], g.Input("grad_y", {samples, length, units}),
                   g.Input("grad_h", {samples, units}), zeros});
        g.Add(std::make_shared<LinearGradWeightOp>(true), {x, grads[0]});
        g.Add(std::make_shared<LinearGradWeightOp>(true), {grads[3], grads[0]});
      }};
}

}  // namespace

std::vector<OpCase> SequenceCases() {
  return {Gathering({3, 5}, 11, 7, GatherRowsOp::kNoPadding),
          Gathering({40}, 4, 35, 2),
          Gathering({7, 90}, 37, 260, 5),
          Gathering({1, 1, 2}, 1, 1, GatherRowsOp::kNoPadding),
          Positions({3, 5, 7}),
          Positions({1, 1, 2}),
          LayerNormalization({2, 5, 8}, 1, 1e-5),
          LayerNormalization({3, 37}, 1, 0.1),
          LayerNormalization({3, 2, 4, 5}, 3, 1e-5),
          LayerNormalization({17, 3, 5}, 2, 0),
          LayerNormalization({3, 1336}, 1, 1e-5),
          LayerNormalization({300, 24}, 1, 1e-5),
          Heads({2, 5, 24}, 3, 2),
          Heads({3, 7, 5}, 1, 5),
          Heads({1, 1, 6}, 2, 1),
          Product({}, 3, 5, 4),
          Product({2, 3}, 7, 5, 9),
          Product({3}, 1, 33, 1),
          Product({2}, 35, 17, 40),
          AttentionWeights({2, 3, 5, 5}, false, 4),
          AttentionWeights({2, 3, 5, 5}, true, 4),
          AttentionWeights({2, 4, 19}, true, 40),
          AttentionWeights({2, 37, 37}, true, 30),
          AttentionWeights({3, 6, 4}, true, 1),
          AttentionWeights({1, 1}, true, 1),
          LongShortTermMemory(2, 5, 4, 3, false),
          LongShortTermMemory(19, 3, 5, 33, true),
          LongShortTermMemory(16, 1, 2, 16, false),
          LongShortTermMemory(1, 7, 1, 1, true)};
}

}  // namespace tandem
