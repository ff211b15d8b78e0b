#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/activation.h"
#include "engine/graph/ops/adagrad.h"
#include "engine/graph/ops/adam.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/attention.h"
#include "engine/graph/ops/augmentation.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/channel_bias.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/clip_gradients.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/dropout.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/gather_samples.h"
#include "engine/graph/ops/gradient_factors.h"
#include "engine/graph/ops/group_norm.h"
#include "engine/graph/ops/heads.h"
#include "engine/graph/ops/layer_norm.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/lion.h"
#include "engine/graph/ops/lstm.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/moving_average.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pad.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/positions.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"
#include "engine/graph/ops/softmax.h"
#include "engine/graph/ops/unscale_gradients.h"
#include "engine/graph/ops/upsample.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TensorType F32(Shape shape) { return {DType::kFloat32, std::move(shape)}; }
TensorType F64(Shape shape) { return {DType::kFloat64, std::move(shape)}; }
TensorType I32(Shape shape) { return {DType::kInt32, std::move(shape)}; }
TensorType I64(Shape shape) { return {DType::kInt64, std::move(shape)}; }
TensorType U8(Shape shape) { return {DType::kUInt8, std::move(shape)}; }

void ExpectTypes(const Op& op, const std::vector<TensorType>& inputs,
                 const std::vector<TensorType>& expected) {
  const auto outputs = op.Infer(inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  ASSERT_EQ(outputs->size(), expected.size()) << op.kind();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ((*outputs)[i].ToString(), expected[i].ToString()) << op.kind();
  }
}

// Checks the refusal: the error names the kind and shows all input types.
void ExpectRefused(const Op& op, const std::vector<TensorType>& inputs) {
  const absl::Status status = op.Infer(inputs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << op.kind();
  EXPECT_TRUE(absl::StartsWith(status.message(), op.kind())) << status;
  for (const TensorType& input : inputs) {
    EXPECT_TRUE(absl::StrContains(status.message(), input.ToString())) << status;
  }
}

TEST(ShapeRules, Conv2d) {
  const Conv2dOp plain({});
  ExpectTypes(plain, {F32({8, 3, 28, 27}), F32({20, 3, 5, 4})}, {F32({8, 20, 24, 24})});
  ExpectTypes(plain, {F32({8, 3, 28, 27}), F32({20, 3, 5, 4}), F32({20})}, {F32({8, 20, 24, 24})});
  const Conv2dGeometry geometry = {.stride = {2, 3}, .padding = {1, 2}, .dilation = {2, 1}, .groups = 2};
  ExpectTypes(Conv2dOp(geometry), {F64({1, 4, 11, 9}), F64({6, 2, 3, 3})}, {F64({1, 6, 5, 4})});
  ExpectTypes(Conv2dGradInputOp(geometry, {1, 4, 11, 9}), {F64({1, 6, 5, 4}), F64({6, 2, 3, 3})},
              {F64({1, 4, 11, 9})});
  ExpectTypes(Conv2dGradWeightOp(geometry, {6, 2, 3, 3}, true), {F64({1, 4, 11, 9}), F64({1, 6, 5, 4})},
              {F64({6, 2, 3, 3}), F64({6})});
  ExpectRefused(plain, {F32({8, 3, 28, 28})});
  ExpectRefused(plain, {F32({8, 3, 28, 28}), F64({20, 3, 5, 5})});
  ExpectRefused(plain, {U8({8, 3, 28, 28}), U8({20, 3, 5, 5})});
  ExpectRefused(plain, {F32({8, 3, 28}), F32({20, 3, 5, 5})});
  ExpectRefused(plain, {F32({8, 3, 28, 28}), F32({20, 4, 5, 5})});
  ExpectRefused(plain, {F32({8, 3, 4, 28}), F32({20, 3, 5, 5})});
  ExpectRefused(plain, {F32({8, 3, 28, 28}), F32({20, 3, 5, 5}), F32({21})});
  ExpectRefused(Conv2dOp({.groups = 2}), {F32({8, 3, 28, 28}), F32({20, 3, 5, 5})});
  ExpectRefused(Conv2dOp({.groups = 0}), {F32({8, 3, 28, 28}), F32({20, 3, 5, 5})});
  for (const int64_t bad : {int64_t{-1}, kHuge}) {
    ExpectRefused(Conv2dOp({.stride = {1, bad}}), {F32({8, 3, 28, 28}), F32({20, 3, 5, 5})});
    ExpectRefused(Conv2dOp({.padding = {bad, 1}}), {F32({8, 3, 28, 28}), F32({20, 3, 5, 5})});
    ExpectRefused(Conv2dOp({.dilation = {bad, 1}}), {F32({8, 3, 28, 28}), F32({20, 3, 5, 5})});
  }
  ExpectRefused(plain, {F32({8, 3, 28, 28}), F32({20, 3, kHuge, 5})});
  ExpectRefused(Conv2dGradInputOp({}, {8, 3, 28, 28}), {F32({8, 20, 24, 23}), F32({20, 3, 5, 5})});
  ExpectRefused(Conv2dGradWeightOp({}, {20, 3, 5, 5}, false), {F32({8, 3, 28, 28}), F32({7, 20, 24, 24})});
}

TEST(ShapeRules, Pooling) {
  const PoolGeometry geometry = {{3, 2}, {2, 1}, {1, 0}};
  ExpectTypes(MaxPool2dOp(geometry), {F32({2, 5, 9, 7})}, {F32({2, 5, 5, 6}), U8({2, 5, 5, 6})});
  ExpectTypes(MaxPool2dGradOp(geometry, {2, 5, 9, 7}), {F32({2, 5, 5, 6}), U8({2, 5, 5, 6})},
              {F32({2, 5, 9, 7})});
  ExpectTypes(AveragePool2dOp(geometry, true), {F32({2, 5, 9, 7})}, {F32({2, 5, 5, 6})});
  ExpectTypes(AveragePool2dGradOp(geometry, true, {2, 5, 9, 7}), {F32({2, 5, 5, 6})}, {F32({2, 5, 9, 7})});
  ExpectRefused(MaxPool2dOp(geometry), {F32({5, 9, 7})});
  ExpectRefused(MaxPool2dOp(geometry), {I32({2, 5, 9, 7})});
  ExpectRefused(MaxPool2dOp(geometry), {F32({2, 5, 9, 1})});
  ExpectRefused(MaxPool2dOp({{3, 3}, {1, 1}, {2, 0}}), {F32({2, 5, 9, 7})});
  ExpectRefused(MaxPool2dOp({{3, 3}, {0, 1}}), {F32({2, 5, 9, 7})});
  ExpectRefused(MaxPool2dOp({{16, 16}, {1, 1}}), {F32({2, 5, 20, 20})});
  ExpectRefused(MaxPool2dGradOp(geometry, {2, 5, 9, 7}), {F32({2, 5, 5, 6}), F32({2, 5, 5, 6})});
  ExpectRefused(AveragePool2dOp({{3, 3}, {1, 1}, {2, 0}}, false), {F32({2, 5, 9, 7})});
  ExpectRefused(AveragePool2dGradOp(geometry, true, {2, 5, 9, 7}), {F32({2, 5, 6, 6})});
}

TEST(ShapeRules, Activations) {
  const ActivationRule elu = {ActivationFunction::kElu};
  ExpectTypes(ActivationOp(elu), {F32({2, 3})}, {F32({2, 3})});
  ExpectTypes(ActivationGradOp(elu), {F64({2, 3}), F64({2, 3})}, {F64({2, 3})});
  ExpectTypes(SoftmaxOp(1, true), {F32({2, 3})}, {F32({2, 3})});
  ExpectTypes(SoftmaxGradOp(0, false), {F32({2, 3}), F32({2, 3})}, {F32({2, 3})});
  ExpectRefused(ActivationOp({ActivationFunction::kElu, std::numeric_limits<double>::quiet_NaN()}),
                {F32({2, 3})});
  ExpectRefused(ActivationOp({ActivationFunction::kSoftplus, 0}), {F32({2, 3})});
  ExpectRefused(ActivationOp(elu), {I32({2, 3})});
  ExpectRefused(ActivationGradOp(elu), {F32({2, 3}), F32({3, 2})});
  ExpectRefused(SoftmaxOp(2, false), {F32({2, 3})});
  ExpectRefused(SoftmaxOp(-1, false), {F32({2, 3})});
  ExpectRefused(SoftmaxGradOp(0, false), {F32({2, 3}), F32({2})});
}

TEST(ShapeRules, Joining) {
  ExpectTypes(MultiplyOp(), {F32({2, 3}), F32({2, 3})}, {F32({2, 3})});
  ExpectRefused(MultiplyOp(), {F32({2, 3}), F32({2, 1})});
  ExpectTypes(ConcatOp(1), {F32({2, 3, 4}), F32({2, 5, 4})}, {F32({2, 8, 4})});
  ExpectTypes(SplitOp(1, {3, 5}), {F32({2, 8, 4})}, {F32({2, 3, 4}), F32({2, 5, 4})});
  ExpectRefused(ConcatOp(1), {F32({2, 3, 4}), F32({2, 5, 3})});
  ExpectRefused(ConcatOp(1), {F32({2, 3, 4}), F32({2, 5})});
  ExpectRefused(ConcatOp(2), {F32({2, 3})});
  ExpectRefused(SplitOp(1, {3, 4}), {F32({2, 8})});
  ExpectRefused(SplitOp(1, {8, 0}), {F32({2, 8})});
  ExpectTypes(ChannelBiasOp(), {F32({2, 3, 4, 5}), F32({3})}, {F32({2, 3, 4, 5})});
  ExpectTypes(ChannelBiasGradOp(), {F32({2, 3, 4, 5})}, {F32({3})});
  ExpectRefused(ChannelBiasOp(), {F32({2, 3, 4}), F32({4})});
}

TEST(ShapeRules, Padding) {
  const Margins margins = {{1, 0}, {2, 3}};
  ExpectTypes(Pad2dOp(margins), {F32({2, 3, 4, 5})}, {F32({2, 3, 7, 8})});
  ExpectTypes(Crop2dOp(margins), {F32({2, 3, 4, 5})}, {F32({2, 3, 1, 2})});
  ExpectRefused(Pad2dOp(margins), {F32({3, 4, 5})});
  ExpectRefused(Pad2dOp({{-1, 0}, {0, 0}}), {F32({2, 3, 4, 5})});
  ExpectRefused(Pad2dOp({{0, 0}, {0, kHuge}}), {F32({2, 3, 4, 5})});
  ExpectRefused(Crop2dOp(margins), {F32({2, 3, 3, 5})});
}

TEST(ShapeRules, Dropout) {
  ExpectTypes(DropoutOp(0.5, 1, 0), {F32({2, 3}), I64({})}, {F32({2, 3})});
  ExpectRefused(DropoutOp(1, 1, 0), {F32({2, 3}), I64({})});
  ExpectRefused(DropoutOp(-0.1, 1, 0), {F32({2, 3}), I64({})});
  ExpectRefused(DropoutOp(0.5, 1, -1), {F32({2, 3}), I64({})});
  ExpectRefused(DropoutOp(0.5, 1, 0), {F32({2, 3}), I32({})});
  const DropoutOp op(0.5, 1, 4);
  const uint64_t words = op.WordsOf(3, 2).Next64();
  EXPECT_EQ(RandomStream(1, RandomPurpose::kDropout, 3, 6).Next64(), words);
  EXPECT_EQ(DropoutOp(0.5, 1, 0).WordsOf(3, 6).Next64(), words);
  EXPECT_NE(op.WordsOf(4, 2).Next64(), words);
  // The step input can shift the samples by 2 places.
  EXPECT_EQ(op.WordsOf(DropoutOp::StepInput(3, 2), 0).Next64(), words);
  EXPECT_NE(op.WordsOf(DropoutOp::StepInput(3, 2), 2).Next64(), words);
  // The largest step and the last sample of the largest batch.
  constexpr int64_t kLastStep = (int64_t{1} << DropoutOp::kStepBits) - 1;
  constexpr int64_t kLastSample = (int64_t{1} << 28) - 1;
  EXPECT_EQ(DropoutOp(0.5, 1, 0).WordsOf(DropoutOp::StepInput(kLastStep, kLastSample), 1).Next64(),
            RandomStream(1, RandomPurpose::kDropout, kLastStep, kLastSample + 1).Next64());
}

TEST(ShapeRules, Upsampling) {
  const UpsampleRule rule = {.size = {8, 15}};
  ExpectTypes(UpsampleOp(rule), {F32({2, 3, 4, 5})}, {F32({2, 3, 8, 15})});
  ExpectTypes(UpsampleGradOp(rule, Shape({2, 3, 4, 5})), {F32({2, 3, 8, 15})}, {F32({2, 3, 4, 5})});
  ExpectRefused(UpsampleOp({.size = {0, 4}}), {F32({2, 3, 4, 5})});
  ExpectRefused(UpsampleOp(rule), {F32({3, 4, 5})});
  ExpectRefused(UpsampleGradOp(rule, Shape({2, 3, 4, 5})), {F32({2, 3, 8, 10})});
}

TEST(ShapeRules, GroupNormalization) {
  const GroupNormOp op(2, 1e-5);
  ExpectTypes(op, {F32({3, 4, 5}), F32({4}), F32({4})}, {F32({3, 4, 5}), F32({3, 2}), F32({3, 2})});
  ExpectTypes(GroupNormGradOp(2), {F32({3, 4, 5}), F32({3, 4, 5}), F32({4}), F32({3, 2}), F32({3, 2})},
              {F32({3, 4, 5}), F32({4}), F32({4})});
  ExpectRefused(GroupNormOp(3, 1e-5), {F32({3, 4, 5}), F32({4}), F32({4})});
  ExpectRefused(GroupNormOp(2, -1), {F32({3, 4, 5}), F32({4}), F32({4})});
  ExpectRefused(op, {F32({3, 4, 5}), F32({2}), F32({4})});
}

TEST(ShapeRules, PoolingRoundedUp) {
  const PoolGeometry plain = {.size = {3, 2}, .stride = {2, 3}, .padding = {1, 0}};
  PoolGeometry rounded = plain;
  rounded.ceil_mode = true;
  ExpectTypes(AveragePool2dOp(plain, true), {F32({1, 1, 6, 6})}, {F32({1, 1, 3, 2})});
  // A fourth row of windows begins in the image. A third column would begin beyond it.
  ExpectTypes(AveragePool2dOp(rounded, true), {F32({1, 1, 6, 6})}, {F32({1, 1, 4, 2})});
  ExpectTypes(AveragePool2dOp(rounded, true), {F32({1, 1, 7, 7})}, {F32({1, 1, 4, 3})});
}

TEST(ShapeRules, BatchNormalizationOfASingleValueIsRefused) {
  const auto inputs = [](Shape x) {
    return std::vector<TensorType>{F32(x), F32({3}), F32({3}), F32({3}), F32({3})};
  };
  ExpectRefused(BatchNormOp(0.1, 1e-5), inputs({1, 3}));
  ExpectRefused(BatchNormOp(0.1, 1e-5), inputs({1, 3, 1, 1}));
  EXPECT_TRUE(BatchNormOp(0.1, 1e-5).Infer(inputs({1, 3, 1, 2})).ok());
  EXPECT_TRUE(BatchNormInferenceOp(1e-5).Infer(inputs({1, 3})).ok());
}

TEST(ShapeRules, BatchNormalization) {
  const TensorType x = F32({8, 3, 5, 4});
  const TensorType c = F32({3});
  ExpectTypes(BatchNormOp(0.1, 1e-5), {x, c, c, c, c}, {x, c, c});
  ExpectTypes(BatchNormGradOp(), {x, x, c, c, c}, {x, c, c});
  ExpectTypes(BatchNormInferenceOp(1e-5), {F64({8, 3}), F64({3}), F64({3}), F64({3}), F64({3})},
              {F64({8, 3})});
  ExpectTypes(BatchNormInferenceGradOp(1e-5), {x, x, c, c, c}, {x, c, c});
  EXPECT_EQ(BatchNormOp(0.1, 1e-5).MutatedInputs(), std::vector<int>({3, 4}));
  ExpectRefused(BatchNormOp(0.1, 1e-5), {x, c, c, c, F32({4})});
  ExpectRefused(BatchNormOp(0.1, 1e-5), {x, c, c, c});
  ExpectRefused(BatchNormOp(1.5, 1e-5), {x, c, c, c, c});
  ExpectRefused(BatchNormOp(0.1, -1), {x, c, c, c, c});
  ExpectRefused(BatchNormOp(0.1, 1e-5), {c, c, c, c, c});
  ExpectRefused(BatchNormInferenceOp(1e-5), {x, c, c, c, F64({3})});
  ExpectRefused(BatchNormGradOp(), {x, F32({8, 3, 5, 5}), c, c, c});
}

TEST(ShapeRules, Linear) {
  ExpectTypes(LinearOp(), {F32({7, 3}), F32({5, 3}), F32({5})}, {F32({7, 5})});
  ExpectTypes(LinearOp(), {F32({2, 7, 3}), F32({5, 3})}, {F32({2, 7, 5})});
  ExpectTypes(LinearGradInputOp(), {F32({2, 7, 5}), F32({5, 3})}, {F32({2, 7, 3})});
  ExpectTypes(LinearGradWeightOp(true), {F32({2, 7, 3}), F32({2, 7, 5})}, {F32({5, 3}), F32({5})});
  ExpectRefused(LinearOp(), {F32({3}), F32({5, 3})});
  ExpectRefused(LinearOp(), {F32({7, 3}), F32({5, 4})});
  ExpectRefused(LinearOp(), {F32({7, 3}), F32({5, 3, 1})});
  ExpectRefused(LinearOp(), {F32({7, 3}), F32({5, 3}), F32({3})});
  ExpectRefused(LinearGradInputOp(), {F32({7, 4}), F32({5, 3})});
  ExpectRefused(LinearGradWeightOp(false), {F32({7, 3}), F32({6, 5})});
}

TEST(ShapeRules, Elementwise) {
  ExpectTypes(ReluOp(), {F32({2, 3})}, {F32({2, 3})});
  ExpectTypes(ReluGradOp(), {F32({2, 3}), F32({2, 3})}, {F32({2, 3})});
  ExpectTypes(AddOp(), {F64({}), F64({})}, {F64({})});
  ExpectTypes(ScaleOp(2), {F64({4})}, {F64({4})});
  ExpectTypes(DivideOp(2), {F32({4, 3}), F32({})}, {F32({4, 3})});
  ExpectRefused(DivideOp(2), {F32({4, 3}), F32({3})});
  ExpectRefused(DivideOp(2), {F32({4, 3}), F64({})});
  ExpectRefused(DivideOp(std::numeric_limits<double>::infinity()), {F32({4}), F32({})});
  ExpectTypes(ReshapeOp({3, 4}), {U8({2, 6})}, {U8({3, 4})});
  ExpectRefused(ReluOp(), {I32({2, 3})});
  ExpectRefused(AddOp(), {F32({2, 3}), F32({3, 2})});
  ExpectRefused(AddOp(), {F32({2, 3}), F64({2, 3})});
  ExpectRefused(ReshapeOp({3, 5}), {U8({2, 6})});
  ExpectRefused(ReshapeOp({-3, -4}), {U8({2, 6})});
}

TEST(ShapeRules, Normalize) {
  ExpectTypes(NormalizeOp(1, {0.1, 0.2, 0.3}, {1}, DType::kFloat32), {U8({8, 3, 4, 4})}, {F32({8, 3, 4, 4})});
  ExpectTypes(NormalizeOp(1, {0}, {1}, DType::kFloat64), {F32({8})}, {F64({8})});
  ExpectRefused(NormalizeOp(1, {0.1, 0.2}, {1}, DType::kFloat32), {U8({8, 3, 4, 4})});
  ExpectRefused(NormalizeOp(1, {0}, {}, DType::kFloat32), {U8({8, 3, 4, 4})});
  ExpectRefused(NormalizeOp(1, {0}, {0}, DType::kFloat32), {U8({8, 3, 4, 4})});
  ExpectRefused(NormalizeOp(1, {0}, {1}, DType::kInt32), {U8({8, 3, 4, 4})});
  ExpectRefused(NormalizeOp(1, {0}, {1}, DType::kFloat32), {I32({8, 3, 4, 4})});
}

TEST(ShapeRules, Classification) {
  ExpectTypes(SoftmaxCrossEntropyOp(), {F32({8, 10}), I32({8})}, {F32({}), F32({8, 10})});
  ExpectTypes(SoftmaxCrossEntropyOp(), {F64({8, 10}), I32({8})}, {F64({}), F64({8, 10})});
  ExpectTypes(SoftmaxCrossEntropyGradOp(), {F32({8, 10}), I32({8}), F32({})}, {F32({8, 10})});
  ExpectTypes(CountCorrectOp(), {F32({8, 10}), I32({8})}, {F32({})});
  ExpectRefused(SoftmaxCrossEntropyOp(), {F32({8, 10}), I32({7})});
  ExpectRefused(SoftmaxCrossEntropyOp(), {F32({8, 10}), I64({8})});
  ExpectRefused(SoftmaxCrossEntropyOp(), {F32({8, 10, 1}), I32({8})});
  ExpectRefused(SoftmaxCrossEntropyGradOp(), {F32({8, 10}), I32({8}), F32({1})});
  ExpectRefused(CountCorrectOp(), {F32({8}), I32({8})});
}

TEST(ShapeRules, Updates) {
  ExpectTypes(AccumulateOp({1, 2}), {F64({2}), F32({}), F64({})}, {});
  ExpectRefused(AccumulateOp({1, 2}), {F64({2}), F32({})});
  ExpectRefused(AccumulateOp({1}), {F32({1}), F32({})});
  ExpectRefused(AccumulateOp({1}), {F64({1}), F32({1})});
  ExpectTypes(AllReduceOp(0.5, 0, 2), {F32({3}), F32({2, 2})}, {F32({3}), F32({2, 2})});
  ExpectRefused(AllReduceOp(0.5, 0, 1), {F32({3}), F32({2, 2})});
  ExpectRefused(AllReduceOp(0.5, 0, 2), {F32({3}), F64({2, 2})});
  ExpectRefused(AllReduceOp(0.5, 0, 0), {});
  ExpectTypes(SgdOp(0, 0, false, 0), {F32({3}), F32({3}), F64({}), I64({})}, {});
  ExpectTypes(SgdOp(0.9, 0, true, 0), {F32({3}), F32({3}), F64({}), I64({}), F32({3})}, {});
  EXPECT_EQ(SgdOp(0, 0, false, 0).MutatedInputs(), std::vector<int>({0}));
  EXPECT_EQ(SgdOp(0.9, 0, false, 0).MutatedInputs(), std::vector<int>({0, 4}));
  ExpectRefused(SgdOp(0.9, 0, false, 0), {F32({3}), F32({3}), F64({}), I64({})});
  ExpectRefused(SgdOp(0, 0, false, 0), {F32({3}), F32({4}), F64({}), I64({})});
  ExpectRefused(SgdOp(0, 0, false, 0), {F32({3}), F32({3}), F32({}), I64({})});
  ExpectRefused(SgdOp(0, 0, false, 0), {F32({3}), F32({3}), F64({}), I32({})});
  ExpectRefused(SgdOp(0, 0, true, 0), {F32({3}), F32({3}), F64({}), I64({})});
  ExpectRefused(SgdOp(0.9, 0.1, true, 0), {F32({3}), F32({3}), F64({}), I64({}), F32({3})});
  ExpectRefused(SgdOp(0, 0, false, std::numeric_limits<double>::quiet_NaN()),
                {F32({3}), F32({3}), F64({}), I64({})});
  ExpectRefused(SgdOp(-1, 0, false, 0), {F32({3}), F32({3}), F64({}), I64({}), F32({3})});
}

TEST(ShapeRules, OptimizersCheckTheirStateAndSettings) {
  const TensorType p = F32({3, 2});
  ExpectTypes(AdamOp({}), {p, p, F64({}), I64({}), p, p}, {});
  ExpectTypes(AdamOp({.amsgrad = true}), {p, p, F64({}), I64({}), p, p, p}, {});
  ExpectTypes(NadamOp({}), {p, p, F64({}), I64({}), p, p}, {});
  EXPECT_EQ(NadamOp({}).MutatedInputs(), std::vector<int>({0, 4, 5}));
  ExpectRefused(AdamOp({}), {p, p, F64({}), I64({}), p, F32({2, 3})});
  ExpectRefused(AdamOp({.beta1 = 1}), {p, p, F64({}), I64({}), p, p});
  ExpectRefused(LambOp({.epsilon = 0}), {p, p, F64({}), I64({}), p, p});
  ExpectRefused(LionOp({.weight_decay = -1}), {p, p, F64({}), I64({}), p});
  ExpectTypes(RmspropOp({.momentum = 0.9, .centered = true}), {p, p, F64({}), I64({}), p, p, p}, {});
}

TEST(ShapeRules, ClippingKeepsTypes) {
  using Mode = ClipGradientsOp::Mode;
  ExpectTypes(ClipGradientsOp(Mode::kByNorm, 1, 2), {F32({3}), F32({2, 2})}, {F32({3}), F32({2, 2})});
  ExpectRefused(ClipGradientsOp(Mode::kByNorm, 1, 2), {F32({3}), F64({2, 2})});
  ExpectRefused(ClipGradientsOp(Mode::kByValue, 0, 1), {F32({3})});
  ExpectRefused(ClipGradientsOp(Mode::kByValue, 1, 0), {});
}

TEST(ShapeRules, UnscalingKeepsTypes) {
  const TensorType number = F64({});
  const TensorType step = I64({});
  const auto inputs = [&](TensorType scale, TensorType second) {
    return std::vector<TensorType>{scale, number, number, F64({1}), step, F32({3}), second};
  };
  ExpectTypes(UnscaleGradientsOp({}, 2), inputs(F32({}), F32({2, 2})), {number, step, F32({3}), F32({2, 2})});
  ExpectRefused(UnscaleGradientsOp({}, 2), inputs(F64({}), F32({2, 2})));
  ExpectRefused(UnscaleGradientsOp({}, 2), inputs(F32({}), F64({2, 2})));
  ExpectRefused(UnscaleGradientsOp({}, 3), inputs(F32({}), F32({2, 2})));
  ExpectRefused(UnscaleGradientsOp({.growth_factor = 1}, 2), inputs(F32({}), F32({2, 2})));
  ExpectRefused(UnscaleGradientsOp({.backoff_factor = 1}, 2), inputs(F32({}), F32({2, 2})));
  ExpectRefused(UnscaleGradientsOp({.growth_interval = 0}, 2), inputs(F32({}), F32({2, 2})));
}

TEST(ShapeRules, AnUpdateMayBeToldWhetherItCounts) {
  std::vector<TensorType> inputs = {F32({3}), F32({3}), F64({}), I64({}), F64({})};
  ExpectTypes(SgdOp(0, 0, false, 0), inputs, {});
  EXPECT_EQ(SgdOp(0, 0, false, 0).ApplyInput(5), 4);
  EXPECT_LT(SgdOp(0, 0, false, 0).ApplyInput(4), 0);
  inputs.back() = F32({});
  ExpectRefused(SgdOp(0, 0, false, 0), inputs);
  ExpectTypes(MovingAverageOp(0.5), {F32({3}), F32({3}), I64({})}, {});
  ExpectTypes(MovingAverageOp(0.5), {F32({3}), F32({3}), I64({}), F64({})}, {});
  ExpectRefused(MovingAverageOp(0.5), {F32({3}), F32({3}), I64({}), F32({})});
  ExpectRefused(MovingAverageOp(0.5), {F32({3}), F32({3}), F64({})});
}

TEST(ShapeRules, GatherRows) {
  ExpectTypes(GatherRowsOp(), {F32({11, 8}), I32({2, 5})}, {F32({2, 5, 8})});
  ExpectTypes(GatherRowsOp(10), {F64({11, 8}), I32({})}, {F64({8})});
  ExpectRefused(GatherRowsOp(11), {F32({11, 8}), I32({2, 5})});
  ExpectRefused(GatherRowsOp(), {F32({11, 8}), I64({2, 5})});
  ExpectRefused(GatherRowsOp(), {F32({11, 8}), F32({2, 5})});
  ExpectRefused(GatherRowsOp(), {F32({11}), I32({2, 5})});
  ExpectTypes(GatherRowsGradOp(11, -1), {I32({2, 5}), F32({2, 5, 8})}, {F32({11, 8})});
  ExpectRefused(GatherRowsGradOp(11, -1), {I32({2, 5}), F32({5, 2, 8})});
  ExpectRefused(GatherRowsGradOp(11, -1), {I32({2, 5}), F32({2, 5})});
}

TEST(ShapeRules, GatherSamples) {
  ExpectTypes(GatherSamplesOp(), {I32({5}), U8({11, 3, 4, 4}), I32({11})}, {U8({5, 3, 4, 4}), I32({5})});
  ExpectTypes(GatherSamplesOp(), {I32({5}), F32({1, 7})}, {F32({5, 7})});
  ExpectRefused(GatherSamplesOp(), {I32({5})});
  ExpectRefused(GatherSamplesOp(), {I64({5}), U8({11, 3})});
  ExpectRefused(GatherSamplesOp(), {I32({5, 1}), U8({11, 3})});
  ExpectRefused(GatherSamplesOp(), {I32({5}), U8({11, 3}), I32({12})});
  ExpectRefused(GatherSamplesOp(), {I32({5}), U8({})});
}

TEST(ShapeRules, AugmentationKeepsImages) {
  ExpectTypes(FlipImagesOp(0, false), {U8({2, 3, 4, 5}), F64({2, 1})}, {U8({2, 3, 4, 5})});
  ExpectTypes(ResampleImagesOp(2, ImageFill::kEdge), {U8({2, 3, 4, 5}), F64({2, 6})}, {U8({2, 3, 4, 5})});
  ExpectRefused(ResampleImagesOp(3, ImageFill::kEdge), {U8({2, 3, 4, 5}), F64({2, 6})});
  ExpectRefused(TranslateImagesOp(-1, ImageFill::kZero), {U8({2, 3, 4, 5}), F64({2, 6})});
  ExpectRefused(EraseImagesOp(0), {U8({2, 3, 4, 5}), F64({3, 6})});
  ExpectRefused(EraseImagesOp(0), {U8({2, 3, 4}), F64({2, 6})});
  ExpectRefused(SpreadImagesOp(0, true), {F32({2, 3, 4, 5}), F64({2, 1})});
  ExpectRefused(SpreadImagesOp(0, true), {U8({2, 3, 4, 5}), F32({2, 1})});
  ExpectTypes(EnlargeImagesOp(1), {U8({2, 1, 4, 5}), F64({2, 5})}, {U8({2, 1, 4, 5})});
  ExpectRefused(EnlargeImagesOp(2), {U8({2, 1, 4, 5}), F64({2, 5})});
  ExpectTypes(SaturateImagesOp(0), {U8({2, 3, 4, 5}), F64({2, 1})}, {U8({2, 3, 4, 5})});
  ExpectRefused(SaturateImagesOp(0), {U8({2, 1, 4, 5}), F64({2, 1})});
  ExpectTypes(ShiftHuesOp(0), {U8({2, 3, 4, 5}), F64({2, 1})}, {U8({2, 3, 4, 5})});
  ExpectRefused(ShiftHuesOp(0), {U8({2, 4, 4, 5}), F64({2, 1})});
  ExpectRefused(ShiftHuesOp(0), {F32({2, 3, 4, 5}), F64({2, 1})});
}

TEST(ShapeRules, Positions) {
  ExpectTypes(AddToEachOp(), {F32({3, 5, 7}), F32({5, 7})}, {F32({3, 5, 7})});
  ExpectRefused(AddToEachOp(), {F32({3, 5, 7}), F32({3, 5, 7})});
  ExpectRefused(AddToEachOp(), {F32({}), F32({})});
  ExpectTypes(SumOfEachOp(), {F32({3, 5, 7})}, {F32({5, 7})});
  ExpectTypes(AddSinusoidsOp(), {F32({3, 5, 7})}, {F32({3, 5, 7})});
  ExpectRefused(AddSinusoidsOp(), {F32({3, 5})});
}

TEST(ShapeRules, LayerNorm) {
  const LayerNormOp images(3, 1e-5);
  ExpectTypes(images, {F32({2, 3, 4, 5}), F32({3, 4, 5}), F32({3, 4, 5})},
              {F32({2, 3, 4, 5}), F32({2}), F32({2})});
  ExpectTypes(LayerNormOp(1, 0), {F64({2, 8}), F64({8}), F64({8})}, {F64({2, 8}), F64({2}), F64({2})});
  ExpectRefused(images, {F32({4, 5}), F32({4, 5}), F32({4, 5})});
  ExpectRefused(images, {F32({2, 3, 4, 5}), F32({4, 5}), F32({4, 5})});
  ExpectRefused(LayerNormOp(0, 1e-5), {F32({2, 8}), F32({8}), F32({8})});
  ExpectRefused(LayerNormOp(1, -1), {F32({2, 8}), F32({8}), F32({8})});
  ExpectRefused(LayerNormOp(1, std::numeric_limits<double>::infinity()), {F32({2, 8}), F32({8}), F32({8})});
  ExpectTypes(LayerNormGradOp(1, 0), {F32({2, 8}), F32({2, 8}), F32({8}), F32({2}), F32({2})},
              {F32({2, 8}), F32({8}), F32({8})});
  ExpectRefused(LayerNormGradOp(1, 0), {F32({2, 8}), F32({2, 8}), F32({8}), F32({8}), F32({2})});
}

TEST(ShapeRules, HeadsSplitAndMerge) {
  const TensorType part = F32({2, 4, 5, 3});
  ExpectTypes(SplitHeadsOp(3, 4), {F32({2, 5, 36})}, {part, part, part});
  ExpectTypes(MergeHeadsOp(), {part, part, part}, {F32({2, 5, 36})});
  ExpectRefused(SplitHeadsOp(3, 5), {F32({2, 5, 36})});
  ExpectRefused(SplitHeadsOp(0, 4), {F32({2, 5, 36})});
  ExpectRefused(SplitHeadsOp(3, 4), {F32({5, 36})});
  ExpectRefused(MergeHeadsOp(), {});
  ExpectRefused(MergeHeadsOp(), {part, F32({2, 4, 5, 2})});
}

TEST(ShapeRules, Matmul) {
  ExpectTypes(MatmulOp(), {F32({6, 2, 3, 4}), F32({6, 2, 4, 5})}, {F32({6, 2, 3, 5})});
  ExpectTypes(MatmulOp(true, false), {F32({4, 3}), F32({4, 5})}, {F32({3, 5})});
  ExpectTypes(MatmulOp(false, true), {F32({3, 4}), F32({5, 4})}, {F32({3, 5})});
  ExpectTypes(MatmulOp(true, true), {F32({4, 3}), F32({5, 4})}, {F32({3, 5})});
  ExpectRefused(MatmulOp(), {F32({3, 4}), F32({5, 4})});
  ExpectRefused(MatmulOp(), {F32({2, 3, 4}), F32({3, 4, 5})});
  ExpectRefused(MatmulOp(), {F32({2, 3, 4}), F32({4, 5})});
  ExpectRefused(MatmulOp(), {F32({4}), F32({4})});
  const std::vector<TensorType> inputs = {F32({6, 4, 3}), F32({6, 4, 5})};
  EXPECT_EQ(MatmulOp(true, false).Cost(inputs, std::vector<TensorType>{F32({6, 3, 5})}).flops,
            2.0 * 6 * 3 * 4 * 5);
}

TEST(ShapeRules, GradientFactors) {
  ExpectTypes(OrthonormalizeOp(), {F32({7, 3})}, {F32({7, 3})});
  ExpectTypes(OrthonormalizeOp(), {F64({3, 3})}, {F64({3, 3})});
  ExpectRefused(OrthonormalizeOp(), {F32({3, 7})});
  ExpectRefused(OrthonormalizeOp(), {F32({7})});
  ExpectRefused(OrthonormalizeOp(), {I32({7, 3})});
  const RestoreGradientOp wide(/*tall=*/false), tall(/*tall=*/true);
  ExpectTypes(wide, {F32({5, 2}), F32({9, 2}), F32({9, 2})}, {F32({5, 9})});
  ExpectTypes(tall, {F32({5, 2}), F32({9, 2}), F32({9, 2})}, {F32({9, 5})});
  ExpectRefused(wide, {F32({5, 2}), F32({9, 3}), F32({9, 3})});
  ExpectRefused(wide, {F32({5, 2}), F32({9, 2}), F32({5, 2})});
  ExpectRefused(wide, {F32({5, 2}), F32({9}), F32({9, 2})});
  ExpectRefused(wide, {F32({5, 2}), F32({9, 2})});
}

TEST(ShapeRules, AttentionSoftmax) {
  ExpectTypes(AttentionSoftmaxOp(0.5, true), {F32({2, 3, 4})}, {F32({2, 3, 4})});
  ExpectRefused(AttentionSoftmaxOp(0, true), {F32({2, 3, 4})});
  ExpectRefused(AttentionSoftmaxOp(1, false), {F32({4})});
  ExpectRefused(AttentionSoftmaxGradOp(1, false), {F32({3, 4}), F32({4, 3})});
}

TEST(ShapeRules, Lstm) {
  const std::vector<TensorType> inputs = {F32({2, 5, 12}), F32({2, 3}), F32({2, 3}), F32({12, 3}), F32({12})};
  ExpectTypes(LstmOp(false), inputs,
              {F32({2, 5, 3}), F32({2, 3}), F32({2, 3}), F32({2, 5, 12}), F32({2, 5, 3})});
  std::vector<TensorType> wrong = inputs;
  wrong[1] = F32({5, 3});
  ExpectRefused(LstmOp(false), wrong);
  wrong = inputs;
  wrong[3] = F32({3, 12});
  ExpectRefused(LstmOp(true), wrong);
  ExpectRefused(LstmOp(false), {F32({2, 5, 13}), F32({2, 3}), F32({2, 3}), F32({12, 3}), F32({12})});
  const std::vector<TensorType> grads = {F32({12, 3}),   F32({2, 3}),     F32({2, 3}),
                                         F32({2, 5, 3}), F32({2, 5, 12}), F32({2, 5, 3}),
                                         F32({2, 5, 3}), F32({2, 3}),     F32({2, 3})};
  ExpectTypes(LstmGradOp(false), grads, {F32({2, 5, 12}), F32({2, 3}), F32({2, 3}), F32({2, 5, 3})});
}

TEST(Cost, CountsMultiplicationsAndAdditions) {
  const std::vector<TensorType> inputs = {F32({8, 3, 10, 10}), F32({4, 3, 3, 3})};
  const OpCost cost = Conv2dOp({}).Cost(inputs, std::vector<TensorType>{F32({8, 4, 8, 8})});
  EXPECT_EQ(cost.flops, 2.0 * 8 * 4 * 8 * 8 * 3 * 3 * 3);
  EXPECT_EQ(cost.bytes, 4.0 * (8 * 3 * 10 * 10 + 4 * 3 * 3 * 3 + 8 * 4 * 8 * 8));
  const std::vector<TensorType> dense = {F32({16, 100}), F32({10, 100}), F32({10})};
  EXPECT_EQ(LinearOp().Cost(dense, std::vector<TensorType>{F32({16, 10})}).flops, 2.0 * 16 * 100 * 10 + 160);
}

}  // namespace
}  // namespace tandem
