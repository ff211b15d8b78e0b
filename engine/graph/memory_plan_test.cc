#include "engine/graph/memory_plan.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/autodiff.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// An op from all inputs to outputs of the given sizes. Output 0 may reuse the memory of input 0.
class AnyOp final : public Op {
 public:
  explicit AnyOp(std::vector<int64_t> sizes) : sizes(std::move(sizes)) {}
  absl::string_view kind() const override { return "any"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType>) const override {
    std::vector<TensorType> types;
    for (const int64_t size : sizes) types.push_back({DType::kUInt8, Shape({size})});
    return types;
  }
  std::vector<std::pair<int, int>> InPlace() const override { return {{0, 0}}; }

  std::vector<int64_t> sizes;
};

bool Overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// Returns whether `node` may compute `to` over `from`: the op declares the pair, and no later node reads
// `from`.
bool MayShare(const Graph& graph, const MemoryPlan& plan, ValueId from, ValueId to) {
  if (graph.value(to).producer == kNoNode) return false;
  const Node& node = graph.node(graph.value(to).producer);
  if (plan.last_use[from] != node.id) return false;
  for (const auto& [output, input] : node.op->InPlace()) {
    if (node.outputs[output] == to && node.inputs[input] == from) return true;
  }
  return false;
}

void CheckPlan(const Graph& graph, const MemoryPlan& plan) {
  const NodeId end = static_cast<NodeId>(graph.nodes().size());
  for (const Value& value : graph.values()) {
    const int64_t offset = plan.offsets[value.id];
    if (value.role != ValueRole::kIntermediate) {
      EXPECT_EQ(offset, -1);
      continue;
    }
    EXPECT_GE(offset, 0);
    EXPECT_EQ(offset % 64, 0);
    EXPECT_LE(offset + DenseBytes(value), plan.arena_bytes);
    EXPECT_EQ(plan.first_use[value.id], value.producer);
    NodeId last = value.producer;
    for (const Node& node : graph.nodes()) {
      if (std::find(node.inputs.begin(), node.inputs.end(), value.id) != node.inputs.end()) last = node.id;
    }
    const auto outputs = graph.outputs();
    if (std::find(outputs.begin(), outputs.end(), value.id) != outputs.end()) last = end;
    EXPECT_EQ(plan.last_use[value.id], last);
  }
  for (const Value& a : graph.values()) {
    for (const Value& b : graph.values()) {
      if (a.id >= b.id || plan.offsets[a.id] < 0 || plan.offsets[b.id] < 0) continue;
      const bool alive_together =
          plan.first_use[a.id] <= plan.last_use[b.id] && plan.first_use[b.id] <= plan.last_use[a.id];
      if (!alive_together || MayShare(graph, plan, a.id, b.id)) continue;
      EXPECT_FALSE(Overlap(plan.offsets[a.id], DenseBytes(a), plan.offsets[b.id], DenseBytes(b)))
          << "values " << a.id << " and " << b.id << " in\n"
          << graph.ToString();
    }
  }
}

Graph RandomGraph(uint64_t seed) {
  std::mt19937_64 random(seed);
  Graph graph;
  std::vector<ValueId> values = {graph.AddInput("x", DType::kUInt8, {100}),
                                 graph.AddConstant(1, DType::kUInt8, {100})};
  const int nodes = 1 + random() % 40;
  for (int i = 0; i < nodes; ++i) {
    std::vector<ValueId> inputs;
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
      inputs.push_back(values[values.size() - 1 - random() % std::min<size_t>(values.size(), 6)]);
    }
    std::vector<int64_t> sizes;
    for (uint64_t count = 1 + random() % 3; count > 0; --count) sizes.push_back(1 + random() % 4 * 100);
    const auto outputs = graph.AddNode(std::make_shared<AnyOp>(sizes), inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    values.insert(values.end(), outputs->begin(), outputs->end());
    if (random() % 8 == 0) graph.MarkOutput(values.back());
  }
  return graph;
}

TEST(MemoryPlan, KeepsApartWhatLivesTogether) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed);
    CheckPlan(graph, PlanMemory(graph));
    if (HasFailure()) return;
  }
}

TEST(MemoryPlan, IsDeterministic) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const MemoryPlan a = PlanMemory(RandomGraph(seed));
    const MemoryPlan b = PlanMemory(RandomGraph(seed));
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.arena_bytes, b.arena_bytes);
  }
}

TEST(MemoryPlan, TakesNoMoreThanAChainNeeds) {
  Graph graph;
  ValueId x = graph.AddInput("x", DType::kFloat32, {1000});
  for (int i = 0; i < 10; ++i) x = *graph.Add(std::make_shared<ReluOp>(), {x});
  EXPECT_EQ(PlanMemory(graph).arena_bytes, 4032);
  graph.MarkOutput(x);
  EXPECT_EQ(PlanMemory(graph).arena_bytes, 4032);
}

TEST(MemoryPlan, DoesNotOverwriteWhatIsReadTwiceByOneNode) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {1000});
  const ValueId y = *graph.Add(std::make_shared<ReluOp>(), {x});
  const ValueId z = *graph.Add(std::make_shared<AddOp>(), {y, y});
  const MemoryPlan plan = PlanMemory(graph);
  EXPECT_NE(plan.offsets[y], plan.offsets[z]);
}

TEST(MemoryPlan, UsesTheBackendsSizes) {
  Graph graph;
  const ValueId x = graph.AddInput("x", DType::kFloat32, {10});
  graph.MarkOutput(*graph.Add(std::make_shared<ReluOp>(), {x}));
  EXPECT_EQ(PlanMemory(graph, [](const Value&) { return 1000; }).arena_bytes, 1024);
}

TEST(MemoryPlan, IsSmallForATrainingStep) {
  constexpr int64_t kBatch = 128;
  Graph graph;
  std::vector<ValueId> parameters;
  const auto parameter = [&](const std::string& name, Shape shape) {
    parameters.push_back(
        graph.AddVariable(name, VariableKind::kParameter, DType::kFloat32, std::move(shape)));
    return parameters.back();
  };
  const PoolGeometry halves = {{2, 2}, {2, 2}};
  ValueId x = graph.AddInput("x", DType::kFloat32, {kBatch, 1, 28, 28});
  const ValueId labels = graph.AddInput("y", DType::kInt32, {kBatch});
  x = *graph.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{}),
                 {x, parameter("w0", {20, 1, 5, 5}), parameter("b0", {20})});
  x = (*graph.AddNode(std::make_shared<MaxPool2dOp>(halves), {x}))[0];
  x = *graph.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{}),
                 {x, parameter("w1", {50, 20, 5, 5}), parameter("b1", {50})});
  x = (*graph.AddNode(std::make_shared<MaxPool2dOp>(halves), {x}))[0];
  x = *graph.Add(std::make_shared<ReshapeOp>(Shape({kBatch, 800})), {x});
  x = *graph.Add(std::make_shared<LinearOp>(), {x, parameter("w2", {500, 800}), parameter("b2", {500})});
  x = *graph.Add(std::make_shared<ReluOp>(), {x});
  x = *graph.Add(std::make_shared<LinearOp>(), {x, parameter("w3", {10, 500}), parameter("b3", {10})});
  const ValueId loss = (*graph.AddNode(std::make_shared<SoftmaxCrossEntropyOp>(), {x, labels}))[0];
  graph.MarkOutput(loss);
  const auto grads = AppendGradients(graph, loss, parameters);
  ASSERT_TRUE(grads.ok()) << grads.status();
  for (const ValueId grad : *grads) graph.MarkOutput(grad);

  const MemoryPlan plan = PlanMemory(graph);
  CheckPlan(graph, plan);
  int64_t sum = 0;
  std::vector<int64_t> alive(graph.nodes().size() + 1, 0);
  for (const Value& value : graph.values()) {
    if (value.role != ValueRole::kIntermediate) continue;
    sum += DenseBytes(value);
    for (NodeId node = plan.first_use[value.id]; node <= plan.last_use[value.id]; ++node) {
      alive[node] += DenseBytes(value);
    }
  }
  // Without in-place sharing, no plan can be smaller than the values that live at once.
  const int64_t most_alive = *std::max_element(alive.begin(), alive.end());
  EXPECT_LE(plan.arena_bytes, most_alive + most_alive / 20);
  EXPECT_LT(plan.arena_bytes, sum / 2);
}

}  // namespace
}  // namespace tandem
