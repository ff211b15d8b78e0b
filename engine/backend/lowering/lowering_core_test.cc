#include "engine/backend/lowering/lowering_core.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/batch_norm.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/sgd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A row-major layout, or the same with 100 bytes more.
class ToyLayout {
 public:
  static ToyLayout Plain(DType dtype, Shape shape) { return {false, dtype, std::move(shape)}; }
  static ToyLayout Padded(DType dtype, Shape shape) { return {true, dtype, std::move(shape)}; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return bytes() / SizeOf(dtype_); }
  int64_t bytes() const { return shape_.elements() * SizeOf(dtype_) + (padded_ ? 100 : 0); }
  ToyLayout WithType(DType dtype) const { return {padded_, dtype, shape_}; }
  bool operator==(const ToyLayout&) const = default;

 private:
  ToyLayout(bool padded, DType dtype, Shape shape)
      : padded_(padded), dtype_(dtype), shape_(std::move(shape)) {}
  bool padded_;
  DType dtype_;
  Shape shape_;
};

class ToyMemory {
 public:
  ToyMemory() = default;
  explicit ToyMemory(int64_t bytes) : bytes_(bytes), data_(std::make_unique<std::byte[]>(bytes)) {}
  std::byte* data() const { return data_.get(); }
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
  std::unique_ptr<std::byte[]> data_;
};

class ToyVariables final : public LaidOutVariables<ToyLayout, ToyMemory> {
 public:
  using LaidOutVariables::LaidOutVariables;

 private:
  absl::StatusOr<ToyMemory> Allocate(const std::string& name, VariableKind, int64_t bytes) override {
    if (name == "too_large") return absl::ResourceExhaustedError(name);
    return ToyMemory(bytes);
  }
  absl::StatusOr<Tensor> ReadMemory(const ToyLayout&, const std::byte*) const override {
    return absl::UnimplementedError("a toy");
  }
  absl::Status WriteMemory(const Tensor&, const ToyLayout&, std::byte*) override { return absl::OkStatus(); }
  absl::Status ClearMemory(std::byte*, int64_t) override { return absl::OkStatus(); }
};

struct ToyRun : RunMemory {};

struct ToyBackend {
  using Layout = ToyLayout;
  using Memory = ToyMemory;
  using RunContext = ToyRun;
  static constexpr absl::string_view kName = "toy";
  static constexpr int64_t kAlignment = 64;
};

// Each node has a step with the name of its kind, and plain results.
class ToyLowering final : public LoweringCore<ToyBackend> {
 public:
  ToyLowering(const Graph& graph, ToyVariables* variables, bool accepts = true)
      : LoweringCore(graph, variables, {.norms = {"batch_norm_inference"}}), accepts_(accepts) {}

  std::vector<std::string> names() {
    std::vector<std::string> names;
    for (const Step& step : steps()) names.push_back(step.name);
    return names;
  }

 private:
  absl::Status LowerNode(const Node& node) override {
    Step step = {.name = std::string(node.op->kind())};
    for (const ValueId input : node.inputs) {
      TANDEM_ASSIGN_OR_RETURN(step.reads.emplace_back(), GetPlain(input));
    }
    ValueId result = node.outputs.empty() ? kNoValue : node.outputs[0];
    if (const ForwardGroup* group = fusions().From(node); group != nullptr && accepts_) {
      TANDEM_RETURN_IF_ERROR(GetPlain(group->addend).status());
      step.name += " + add";
      Accept(*group);
      result = group->result();
    }
    if (result != kNoValue) Define(result, ToyLayout::Plain(DType::kFloat32, shape(result)));
    Emit(std::move(step));
    return absl::OkStatus();
  }
  absl::StatusOr<Region> Convert(ValueId, const Place& from, const ToyLayout& to) override {
    if (from.layout.dtype() != to.dtype()) return absl::UnimplementedError("another type");
    const Region target = Scratch(to.bytes());
    Emit({.name = "convert", .reads = {from.region}, .writes = {target}});
    return target;
  }

  const bool accepts_;
};

ValueId Variable(Graph& graph, const char* name, VariableKind kind = VariableKind::kParameter) {
  return graph.AddVariable(name, kind, DType::kFloat32, {3});
}

ValueId AddNorm(Graph& graph, ValueId x) {
  return *graph.Add(
      std::make_shared<BatchNormInferenceOp>(1e-5),
      {x, Variable(graph, "weight"), Variable(graph, "bias"),
       Variable(graph, "mean", VariableKind::kStatistic), Variable(graph, "var", VariableKind::kStatistic)});
}

TEST(LoweringCoreTest, ConvertsAValueOncePerLayout) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {3});
  ToyVariables variables(nullptr);
  ToyLowering lowering(graph, &variables);
  const ToyLayout padded = ToyLayout::Padded(DType::kFloat32, {3});
  const Region first = *lowering.Get(x, padded);
  EXPECT_EQ(lowering.Get(x, padded)->buffer, first.buffer);
  EXPECT_THAT(lowering.names(), ElementsAre("convert"));
  EXPECT_EQ(lowering.buffers()[first.buffer].bytes, 112);
  lowering.Changed(x);
  EXPECT_NE(lowering.Get(x, padded)->buffer, first.buffer);
  EXPECT_EQ(lowering.Get(x, ToyLayout::Plain(DType::kInt32, {3})).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(LoweringCoreTest, AVariableKeepsItsFirstLayout) {
  Graph graph;
  const ValueId parameter = Variable(graph, "parameter");
  ToyVariables variables(nullptr);
  ASSERT_TRUE(variables.Declare(graph).ok());
  EXPECT_THAT(variables.names(), IsEmpty());
  ToyLowering lowering(graph, &variables);
  const ToyLayout padded = ToyLayout::Padded(DType::kFloat32, {3});
  ASSERT_TRUE(lowering.Get(parameter, padded).ok());
  EXPECT_THAT(variables.names(), ElementsAre("parameter"));
  EXPECT_EQ(variables.bytes(), 112);
  EXPECT_EQ(variables.padding_bytes(), 100);
  EXPECT_THAT(lowering.names(), IsEmpty());
  ASSERT_TRUE(lowering.GetPlain(parameter).ok());
  EXPECT_THAT(lowering.names(), ElementsAre("convert"));

  // Another replica's set, and a set for a model with another shape.
  ToyVariables replica(&variables);
  ASSERT_TRUE(replica.Declare(graph).ok());
  EXPECT_EQ(*replica.Settle("parameter", ToyLayout::Plain(DType::kFloat32, {3})), padded);
  Graph other;
  other.AddVariable("parameter", VariableKind::kParameter, DType::kFloat32, {5});
  EXPECT_EQ(replica.Declare(other).code(), absl::StatusCode::kInvalidArgument);
  ToyVariables others(&variables);
  ASSERT_TRUE(others.Declare(other).ok());
  const ToyLayout plain = ToyLayout::Plain(DType::kFloat32, {5});
  EXPECT_EQ(*others.Settle("parameter", plain), plain);
}

TEST(LoweringCoreTest, AVariableWithoutMemoryDoesNotExist) {
  Graph graph;
  Variable(graph, "too_large");
  ToyVariables variables(nullptr);
  ASSERT_TRUE(variables.Declare(graph).ok());
  EXPECT_EQ(ToyLowering(graph, &variables).LowerGraph().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(variables.Read("too_large").status().code(), absl::StatusCode::kNotFound);
}

// Gradients are computed in their bucket, in their parameters' layouts, at aligned places.
TEST(LoweringCoreTest, GradientsLieInTheirBucket) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {3});
  const ValueId rate = graph.AddInput("rate", DType::kFloat64, {});
  const ValueId step = graph.AddInput("step", DType::kInt64, {});
  const ValueId first = *graph.Add(std::make_shared<ReluOp>(), {x});
  const ValueId second = *graph.Add(std::make_shared<ScaleOp>(2), {x});
  const std::vector<ValueId> reduced =
      *graph.AddNode(std::make_shared<AllReduceOp>(1, 0, 2), {first, second});
  const auto sgd = std::make_shared<SgdOp>(0, 0, false, 0);
  const ValueId padded = Variable(graph, "padded");
  const ValueId plain = Variable(graph, "plain");
  ASSERT_TRUE(graph.AddNode(sgd, {padded, reduced[0], rate, step}).ok());
  ASSERT_TRUE(graph.AddNode(sgd, {plain, reduced[1], rate, step}).ok());
  ToyVariables variables(nullptr);
  ASSERT_TRUE(variables.Declare(graph).ok());
  ToyLowering lowering(graph, &variables);
  ASSERT_TRUE(lowering.SettleVariable(padded, ToyLayout::Padded(DType::kFloat32, {3})).ok());
  // The first has another layout than its parameter.
  const Region alone = lowering.Define(first, ToyLayout::Plain(DType::kFloat32, {3}));
  const Region there = lowering.Define(second, ToyLayout::Plain(DType::kFloat32, {3}));
  EXPECT_FALSE(lowering.InBucket(alone));
  EXPECT_TRUE(lowering.InBucket(there));
  EXPECT_EQ(lowering.BucketSlot(graph.node(2), 0)->region.offset, 0);
  EXPECT_EQ(there.offset, 128);
  const Buffer& bucket = lowering.buffers()[there.buffer];
  EXPECT_EQ(bucket.bytes, 192);
  ASSERT_EQ(bucket.gaps.size(), 2);
  EXPECT_EQ(bucket.gaps[0].offset, 112);
  EXPECT_EQ(bucket.gaps[0].bytes, 16);
  EXPECT_EQ(bucket.gaps[1].offset, 140);
  EXPECT_EQ(bucket.gaps[1].bytes, 52);
}

TEST(LoweringCoreTest, AGroupIsComputedWhenItsAddendExists) {
  for (const bool addend_is_later : {false, true}) {
    for (const bool accepts : {true, false}) {
      Graph graph;
      const ValueId x = graph.AddInput("x", DType::kFloat32, {2, 3});
      ValueId addend = x;
      if (!addend_is_later) addend = *graph.Add(std::make_shared<ReluOp>(), {x});
      const ValueId y = AddNorm(graph, x);
      if (addend_is_later) addend = *graph.Add(std::make_shared<ReluOp>(), {x});
      const ValueId sum = *graph.Add(std::make_shared<AddOp>(), {y, addend});
      graph.MarkOutput(sum);
      ToyVariables variables(nullptr);
      ASSERT_TRUE(variables.Declare(graph).ok());
      ToyLowering lowering(graph, &variables, accepts);
      const absl::Status status = lowering.LowerGraph();
      ASSERT_TRUE(status.ok()) << status;
      EXPECT_TRUE(lowering.Output(0).ok());
      if (accepts) {
        EXPECT_THAT(lowering.names(), ElementsAre("relu", "batch_norm_inference + add"));
      } else {
        EXPECT_THAT(lowering.names(), ElementsAre("relu", "batch_norm_inference", "add"));
      }
    }
  }
}

TEST(LoweringCoreTest, NamesMissingOpsAndTypes) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat64, {3});
  ASSERT_TRUE(graph.Add(std::make_shared<ReluOp>(), {x}).ok());
  int something = 0;
  const absl::Status missing = CheckOffered(
      graph, "toy", [&](absl::string_view kind) { return kind == "add" ? &something : nullptr; });
  EXPECT_EQ(missing.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("toy: this backend does not offer the op relu"));
  EXPECT_TRUE(CheckOffered(graph, "toy", [&](absl::string_view) { return &something; }).ok());
  ToyVariables variables(nullptr);
  const ToyLowering lowering(graph, &variables);
  const absl::Status type = CheckFloat32(lowering, graph.node(0), x);
  EXPECT_EQ(type.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(type.message()), HasSubstr("toy: relu of float64[3]"));
}

}  // namespace
}  // namespace tandem
