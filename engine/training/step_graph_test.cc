#include "engine/training/step_graph.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/training/gradient_reduction.h"
#include "engine/training/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// Weights of 32 KiB, 16 MiB, 16 MiB, 4 MiB and 20 KiB.
v1::JobSpec Deep() {
  v1::JobSpec spec = FromText<v1::JobSpec>(R"(
    model {
      input { shape: [4] }
      layers { dense { units: 2048 activation: ACTIVATION_RELU } }
      layers { dense { units: 2048 activation: ACTIVATION_RELU } }
      layers { dense { units: 2048 activation: ACTIVATION_RELU } }
      layers { dense { units: 512 activation: ACTIVATION_RELU } }
      layers { dense { units: 10 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { nesterov { learning_rate: 0.02 } }
      global_batch_size: 8
      epochs: 1
    }
    replicas { count: 2 })");
  FillDefaults(&spec);
  return spec;
}

const DatasetInfo kData = {.shape = Shape({4}), .classes = 10, .train_samples = 8};

StepGraph Build(int64_t samples, int replicas = 2, int rank = 0) {
  v1::JobSpec spec = Deep();
  if (rank > 0) spec.mutable_replicas()->mutable_all_reduce()->mutable_compression()->set_rank(rank);
  absl::StatusOr<StepGraph> step =
      BuildTrainingGraph(spec, kData, {.samples = samples, .batch_samples = 8, .replicas = replicas});
  EXPECT_TRUE(step.ok()) << step.status();
  return *std::move(step);
}

std::vector<const Node*> Reductions(const Graph& graph) {
  std::vector<const Node*> reductions;
  for (const Node& node : graph.nodes()) {
    if (node.op->kind() == "all_reduce") reductions.push_back(&node);
  }
  return reductions;
}

std::vector<std::vector<Shape>> Buckets(const Graph& graph) {
  std::vector<std::vector<Shape>> buckets;
  for (const Node* node : Reductions(graph)) {
    EXPECT_EQ(static_cast<const AllReduceOp&>(*node->op).bucket, static_cast<int>(buckets.size()));
    std::vector<Shape>& bucket = buckets.emplace_back();
    for (const ValueId input : node->inputs) bucket.push_back(graph.value(input).shape);
  }
  return buckets;
}

TEST(StepGraphTest, TheLastLayersGradientsAreReducedFirst) {
  const std::vector<std::vector<Shape>> buckets = Buckets(Build(4).graph);
  EXPECT_THAT(buckets,
              ElementsAre(ElementsAre(Shape({512, 2048}), Shape({512}), Shape({10, 512}), Shape({10})),
                          ElementsAre(Shape({2048, 2048}), Shape({2048}), Shape({2048, 2048}), Shape({2048})),
                          ElementsAre(Shape({2048, 4}), Shape({2048}))));
}

TEST(StepGraphTest, ReplicasWithAndWithoutSamplesReduceTheSame) {
  EXPECT_EQ(Buckets(Build(4).graph), Buckets(Build(0).graph));
  EXPECT_TRUE(Buckets(Build(8, 1).graph).empty());
}

// A bucket's second factors are reduced after the next bucket has begun.
TEST(StepGraphTest, CompressedBucketsAreReducedTwice) {
  const StepGraph step = Build(4, 2, /*rank=*/3);
  EXPECT_THAT(Buckets(step.graph),
              ElementsAre(ElementsAre(Shape({512, 3}), Shape({512}), Shape({10, 3}), Shape({10})),
                          ElementsAre(Shape({2048, 3}), Shape({2048}), Shape({2048, 3}), Shape({2048})),
                          ElementsAre(Shape({2048, 3}), Shape({512, 3})),
                          ElementsAre(Shape({2048, 4}), Shape({2048})),
                          ElementsAre(Shape({2048, 3}), Shape({2048, 3}))));
  const StepGraph idle = Build(0, 2, /*rank=*/3);
  EXPECT_EQ(Buckets(idle.graph), Buckets(step.graph));
  const auto names_of = [](const Graph& graph) {
    std::set<std::string> names;
    for (const ValueId id : graph.variables()) names.insert(graph.value(id).name);
    return names;
  };
  EXPECT_EQ(names_of(idle.graph), names_of(step.graph));
  EXPECT_EQ(names_of(step.graph).count("compression/error/dense_2.weight"), 1);
  EXPECT_EQ(names_of(Build(8, 1, 3).graph).count("compression/error/dense_2.weight"), 0);
}

// A backend can reduce a bucket while it computes the gradients of earlier layers.
TEST(StepGraphTest, ABucketIsReducedAsSoonAsItsGradientsAreThere) {
  const StepGraph step = Build(4);
  const Graph& graph = step.graph;
  const std::vector<const Node*> reductions = Reductions(graph);
  ASSERT_EQ(reductions.size(), 3);
  for (const Node* reduction : reductions) {
    NodeId last = kNoNode;
    for (const ValueId input : reduction->inputs) last = std::max(last, graph.value(input).producer);
    // At most the gradient of the same layer's input is between them.
    EXPECT_LE(reduction->id - last, 2) << graph.ToString();
  }
  const auto is_gradient = [](const Node& node) { return node.op->kind() == "linear_grad_weight"; };
  EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().begin() + reductions[0]->id, is_gradient), 2);
  EXPECT_EQ(std::count_if(graph.nodes().begin(), graph.nodes().begin() + reductions[1]->id, is_gradient), 4);
}

// The results of reductions are read after the whole backward pass, in the order of the reductions.
TEST(StepGraphTest, ReducedGradientsAreReadAsLateAsCanBe) {
  const StepGraph step = Build(4);
  const Graph& graph = step.graph;
  const std::vector<const Node*> reductions = Reductions(graph);
  std::vector<NodeId> first_readers;
  for (const Node* reduction : reductions) {
    for (const Node& node : graph.nodes()) {
      const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        return graph.value(input).producer == reduction->id;
      });
      if (!reads) continue;
      first_readers.push_back(node.id);
      break;
    }
  }
  ASSERT_EQ(first_readers.size(), 3);
  EXPECT_GT(first_readers[0], reductions.back()->id);
  EXPECT_TRUE(std::is_sorted(first_readers.begin(), first_readers.end()));
}

// Returns the first gradient of the loss, or NaN if only a run can tell.
double FirstGradient(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op->kind() != "softmax_cross_entropy_grad") continue;
    const Value& first = graph.value(node.inputs[2]);
    return first.role == ValueRole::kConstant ? first.constant : std::nan("");
  }
  ADD_FAILURE() << "no gradient in " << graph.ToString();
  return 0;
}

std::vector<double> ScalesOfReductions(const Graph& graph) {
  std::vector<double> scales;
  for (const Node* node : Reductions(graph)) {
    scales.push_back(static_cast<const AllReduceOp&>(*node->op).scale);
  }
  return scales;
}

TEST(StepGraphTest, GradientsBeginAsTheReplicasShareAndAreOnlyAddedUp) {
  const StepGraph step = Build(2);
  EXPECT_EQ(FirstGradient(step.graph), 0.25);
  EXPECT_THAT(ScalesOfReductions(step.graph), ElementsAre(1, 1, 1));
  EXPECT_EQ(FirstGradient(Build(8, 1).graph), 1);
  // A replica without samples adds nothing.
  EXPECT_THAT(ScalesOfReductions(Build(0).graph), ElementsAre(0, 0, 0));
}

TEST(StepGraphTest, PartsOfAShareBeginAsAllOfIt) {
  v1::JobSpec spec = Deep();
  spec.mutable_training()->set_accumulation_steps(2);
  for (const StepShape& part : PartsOf({.samples = 4, .batch_samples = 8, .replicas = 2}, 2)) {
    const absl::StatusOr<StepGraph> step = BuildTrainingGraph(spec, kData, part);
    ASSERT_TRUE(step.ok()) << step.status();
    EXPECT_EQ(FirstGradient(step->graph), 0.5);
    for (const double scale : ScalesOfReductions(step->graph)) EXPECT_EQ(scale, 1);
  }
}

// In these cases the reduction applies the share.
TEST(StepGraphTest, AScaledLossAndSyncedNormsKeepTheirGradients) {
  const StepShape shape = {.samples = 2, .batch_samples = 8, .replicas = 2};
  v1::JobSpec scaled = Deep();
  scaled.mutable_training()->set_precision(v1::PRECISION_FLOAT16);
  FillDefaults(&scaled);
  const absl::StatusOr<StepGraph> by_a_variable = BuildTrainingGraph(scaled, kData, shape);
  ASSERT_TRUE(by_a_variable.ok()) << by_a_variable.status();
  EXPECT_TRUE(std::isnan(FirstGradient(by_a_variable->graph)));
  EXPECT_THAT(ScalesOfReductions(by_a_variable->graph), ElementsAre(0.25, 0.25, 0.25));

  v1::JobSpec synced = Deep();
  *synced.mutable_model()->add_layers() = synced.model().layers(4);
  synced.mutable_model()->mutable_layers(4)->mutable_batch_norm()->set_sync(true);
  FillDefaults(&synced);
  const absl::StatusOr<StepGraph> norms = BuildTrainingGraph(synced, kData, shape);
  ASSERT_TRUE(norms.ok()) << norms.status();
  EXPECT_EQ(FirstGradient(norms->graph), 1);
  EXPECT_EQ(ScalesOfReductions(norms->graph).back(), 0.25);
}

// Loads may give all samples of a short batch to one replica.
TEST(StepGraphTest, SyncedNormsMeetReplicasWithoutSamples) {
  v1::JobSpec spec = Deep();
  *spec.mutable_model()->add_layers() = spec.model().layers(4);
  spec.mutable_model()->mutable_layers(4)->mutable_batch_norm()->set_sync(true);
  FillDefaults(&spec);
  std::vector<size_t> reductions;
  for (const int64_t samples : {4, 0}) {
    const absl::StatusOr<StepGraph> step =
        BuildTrainingGraph(spec, kData, {.samples = samples, .batch_samples = 4, .replicas = 2});
    ASSERT_TRUE(step.ok()) << step.status();
    reductions.push_back(Reductions(step->graph).size());
    const auto updates_statistics = [](const Node& node) {
      return node.op->kind() == "batch_norm_sync" || node.op->kind() == "batch_norm_running";
    };
    EXPECT_TRUE(std::any_of(step->graph.nodes().begin(), step->graph.nodes().end(), updates_statistics));
  }
  EXPECT_EQ(reductions[0], reductions[1]);
}

TEST(StepGraphTest, EveryUpdateTakesAReducedGradientOfItsOwn) {
  const StepGraph step = Build(4);
  std::set<ValueId> reduced;
  for (const Node* reduction : Reductions(step.graph)) {
    reduced.insert(reduction->outputs.begin(), reduction->outputs.end());
  }
  EXPECT_EQ(reduced.size(), step.parameters.size());
  for (const Parameter& parameter : step.parameters) {
    int updates = 0;
    for (const Node& node : step.graph.nodes()) {
      if (node.op->kind() != "sgd" || node.inputs[0] != parameter.value) continue;
      ++updates;
      EXPECT_EQ(reduced.erase(node.inputs[1]), 1) << parameter.name;
      EXPECT_EQ(step.graph.value(node.inputs[1]).shape, parameter.shape);
    }
    EXPECT_EQ(updates, 1) << parameter.name;
  }
}

}  // namespace
}  // namespace tandem
