#include "engine/backend/device_conformance.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "engine/backend/late_communicator.h"
#include "engine/backend/op_cases.h"
#include "engine/backend/thread_communicator.h"
#include "engine/backend/training_case.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/sgd.h"

namespace tandem {
namespace {

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.raw_data(), b.raw_data(), a.bytes()) == 0;
}

void ExpectSameBits(const RunResult& a, const RunResult& b) {
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_TRUE(SameBits(a.outputs[i], b.outputs[i])) << "output " << i;
  }
  ASSERT_EQ(a.variables.size(), b.variables.size());
  for (const auto& [name, value] : a.variables) {
    EXPECT_TRUE(SameBits(value, b.variables.at(name))) << name;
  }
}

void ExpectNear(const RunResult& actual, const RunResult& expected, double tolerance) {
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < actual.outputs.size(); ++i) {
    const double error = RelativeError(actual.outputs[i], expected.outputs[i]);
    // Whole numbers, such as the places of maxima, must be exact.
    const double allowed = IsFloatingPoint(actual.outputs[i].dtype()) ? tolerance : 0;
    if (!(error <= allowed)) ADD_FAILURE() << "output " << i << " is off by " << error;
  }
  ASSERT_EQ(actual.variables.size(), expected.variables.size());
  for (const auto& [name, value] : actual.variables) {
    const double error = RelativeError(value, expected.variables.at(name));
    if (!(error <= tolerance)) ADD_FAILURE() << "variable " << name << " is off by " << error;
  }
}

// A device with a set of variables and executables over it.
struct Session {
  explicit Session(std::unique_ptr<Device> device) : device(std::move(device)) {
    variables = this->device->CreateVariables();
  }

  Executable* Compile(const CaseGraph& graph) {
    absl::StatusOr<std::unique_ptr<Executable>> compiled = device->Compile(graph.graph(), variables.get());
    if (!compiled.ok()) {
      ADD_FAILURE() << compiled.status();
      return nullptr;
    }
    executables.push_back(*std::move(compiled));
    return executables.back().get();
  }

  std::unique_ptr<Device> device;
  std::unique_ptr<Variables> variables;
  std::vector<std::unique_ptr<Executable>> executables;
};

// A kind that no backend knows.
class UnheardOfOp final : public Op {
 public:
  absl::string_view kind() const override { return "unheard_of"; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override {
    return std::vector<TensorType>{inputs[0]};
  }
};

void SetStep(CaseGraph& graph, int64_t step) { graph.inputs()[3].data<int64_t>()[0] = step; }

}  // namespace

TEST_P(DeviceConformance, ComputesWhatTheOracleComputes) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Device> reference = GetParam().make_reference();
  for (const OpCase& op_case : OpCases()) {
    SCOPED_TRACE(op_case.name);
    CaseGraph graph(device->dtype());
    op_case.build(graph);
    if (!CheckOpsOffered(graph.graph(), GetParam().backend).ok()) continue;
    const absl::StatusOr<RunResult> actual = RunCaseOn(*device, graph);
    ASSERT_TRUE(actual.ok()) << actual.status();
    CaseGraph reference_graph(reference->dtype());
    op_case.build(reference_graph);
    const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, reference_graph);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ExpectNear(*actual, *expected, GetParam().tolerance);
  }
}

TEST_P(DeviceConformance, OffersWhatTheTableSays) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  std::set<std::string> kinds;
  for (const OpCase& op_case : OpCases()) {
    SCOPED_TRACE(op_case.name);
    CaseGraph graph(device->dtype());
    op_case.build(graph);
    for (const Node& node : graph.graph().nodes()) kinds.emplace(node.op->kind());
    const std::unique_ptr<Variables> variables = device->CreateVariables();
    EXPECT_EQ(device->Compile(graph.graph(), variables.get()).status().code(),
              CheckOpsOffered(graph.graph(), GetParam().backend).code());
  }
  EXPECT_EQ(kinds, std::set<std::string>(OpKinds().begin(), OpKinds().end()));
}

TEST_P(DeviceConformance, RefusesAnUnknownOpByName) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  CaseGraph graph(device->dtype());
  graph.Add(std::make_shared<UnheardOfOp>(), {graph.Input("x", {3})});
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const absl::Status status = device->Compile(graph.graph(), variables.get()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(status.message(), "unheard_of")) << status;
}

TEST_P(DeviceConformance, RepeatsItselfBitForBit) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  for (const OpCase& op_case : OpCases()) {
    SCOPED_TRACE(op_case.name);
    CaseGraph graph(device->dtype());
    op_case.build(graph);
    if (!CheckOpsOffered(graph.graph(), GetParam().backend).ok()) continue;
    Session session(GetParam().make(0));
    Executable* executable = session.Compile(graph);
    ASSERT_NE(executable, nullptr);
    ASSERT_TRUE(WriteVariables(graph, *session.variables).ok());
    const absl::StatusOr<RunResult> first = RunCase(graph, *executable, *session.variables);
    ASSERT_TRUE(WriteVariables(graph, *session.variables).ok());
    const absl::StatusOr<RunResult> second = RunCase(graph, *executable, *session.variables);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
    ExpectSameBits(*second, *first);
  }
}

TEST_P(DeviceConformance, SpreadsNaN) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const auto build = [](DType dtype) {
    CaseGraph g(dtype);
    const ValueId x = g.Input("x", {3, 2, 5, 7});
    g.Add(std::make_shared<ReluOp>(), {x});
    g.Add(std::make_shared<MaxPool2dOp>(PoolGeometry{{2, 2}, {2, 2}}), {x});
    g.Add(std::make_shared<MaxPool2dOp>(PoolGeometry{{3, 3}, {1, 2}, {1, 1}}), {x});
    g.Add(std::make_shared<AveragePool2dOp>(PoolGeometry{{2, 2}, {2, 2}}, true), {x});
    g.Add(std::make_shared<AddOp>(), {x, x});
    const ValueId rows = g.Input("rows", {4, 6});
    g.Add(std::make_shared<ReluGradOp>(), {rows, rows});
    g.Add(std::make_shared<LinearOp>(), {rows, g.Variable("weight", {5, 6})});
    // A backend may fuse this ReLU with the op before it.
    const ValueId hidden =
        g.AddHidden(std::make_shared<LinearOp>(),
                    {rows, g.Variable("hidden_weight", {5, 6}), g.Variable("bias", {5})})[0];
    g.Add(std::make_shared<ReluOp>(), {hidden});
    const ValueId image =
        g.AddHidden(std::make_shared<Conv2dOp>(Conv2dGeometry{.stride = {1, 1}, .padding = {1, 1}}),
                    {x, g.Variable("filters", {4, 2, 3, 3}), g.Variable("filter_bias", {4})})[0];
    g.Add(std::make_shared<ReluOp>(), {image});
    const ValueId labels = g.Labels("labels", 4, 6);
    g.Add(std::make_shared<SoftmaxCrossEntropyOp>(), {rows, labels});
    g.Add(std::make_shared<CountCorrectOp>(), {rows, labels});
    for (Tensor& input : g.inputs()) {
      if (!IsFloatingPoint(input.dtype())) continue;
      Tensor numbers = input.CastTo(DType::kFloat64);
      // Several NaNs in a single window, and NaNs at a window's start and end.
      for (const int64_t place : {3, 8, 9, 15, 16}) numbers.data<double>()[place] = kNaN;
      input = numbers.CastTo(dtype);
    }
    return g;
  };
  const std::unique_ptr<Device> device = GetParam().make(0);
  const std::unique_ptr<Device> reference = GetParam().make_reference();
  const absl::StatusOr<RunResult> actual = RunCaseOn(*device, build(device->dtype()));
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, build(reference->dtype()));
  ASSERT_TRUE(actual.ok() && expected.ok()) << actual.status() << expected.status();
  ExpectNear(*actual, *expected, GetParam().tolerance);
}

TEST_P(DeviceConformance, TrainsLikeTheOracle) {
  Session session(GetParam().make(0));
  Session reference(GetParam().make_reference());
  // The last batch of an epoch is short: two batch sizes share variables with each other and with an
  // evaluation.
  // evaluation.
  std::vector<CaseGraph> graphs;
  std::vector<CaseGraph> reference_graphs;
  for (const int64_t batch : {8, 3}) {
    graphs.push_back(TrainingCase(session.device->dtype(), batch));
    reference_graphs.push_back(TrainingCase(reference.device->dtype(), batch));
  }
  graphs.push_back(EvaluationCase(session.device->dtype(), 5));
  reference_graphs.push_back(EvaluationCase(reference.device->dtype(), 5));
  for (size_t i = 0; i < graphs.size(); ++i) {
    ASSERT_NE(session.Compile(graphs[i]), nullptr);
    ASSERT_NE(reference.Compile(reference_graphs[i]), nullptr);
  }
  ASSERT_TRUE(WriteVariables(graphs[0], *session.variables).ok());
  ASSERT_TRUE(WriteVariables(reference_graphs[0], *reference.variables).ok());
  int64_t step = 0;
  for (const size_t i : {0u, 0u, 1u, 2u, 0u, 2u, 1u}) {
    SCOPED_TRACE(step);
    if (i < 2) {
      SetStep(graphs[i], step);
      SetStep(reference_graphs[i], step);
      ++step;
    }
    const absl::StatusOr<RunResult> actual = RunCase(graphs[i], *session.executables[i], *session.variables);
    const absl::StatusOr<RunResult> expected =
        RunCase(reference_graphs[i], *reference.executables[i], *reference.variables);
    ASSERT_TRUE(actual.ok() && expected.ok()) << actual.status() << expected.status();
    ExpectNear(*actual, *expected, 20 * GetParam().tolerance);
  }
  for (const std::unique_ptr<Executable>& executable : session.executables) EXPECT_GT(executable->bytes(), 0);
}

TEST_P(DeviceConformance, SeveralRunsAreAsManySingleOnes) {
  constexpr int kRuns = 12;
  std::vector<CaseGraph> graphs;
  std::vector<std::vector<const void*>> inputs;
  Session session(GetParam().make(0));
  for (int run = 0; run < kRuns; ++run) {
    CaseGraph& graph = graphs.emplace_back(session.device->dtype());
    const ValueId x = graph.Input("x", {5, 7});
    const ValueId rate = graph.Number<double>("learning_rate", 0.01 * (1 + run));
    const ValueId step = graph.Number<int64_t>("step", run);
    const ValueId grad = graph.AddHidden(std::make_shared<ScaleOp>(2), {x})[0];
    graph.AddHidden(std::make_shared<SgdOp>(0.9, 0, true, 0.01),
                    {graph.Variable("weight", {5, 7}), grad, rate, step,
                     graph.Variable("momentum", {5, 7}, -1, 1, VariableKind::kOptimizerState)});
    auto* numbers = static_cast<std::byte*>(graph.inputs()[0].raw_data());
    std::rotate(numbers, numbers + run * SizeOf(graph.dtype()), numbers + graph.inputs()[0].bytes());
  }
  for (const CaseGraph& graph : graphs) {
    std::vector<const void*>& of_run = inputs.emplace_back();
    for (const Tensor& input : graph.inputs()) of_run.push_back(input.raw_data());
  }
  const auto read = [&] {
    RunResult result;
    for (const std::string& name : session.variables->names()) {
      absl::StatusOr<Tensor> value = session.variables->Read(name);
      EXPECT_TRUE(value.ok()) << value.status();
      if (value.ok()) result.variables.emplace(name, *std::move(value));
    }
    return result;
  };
  Executable* executable = session.Compile(graphs[0]);
  ASSERT_NE(executable, nullptr);
  ASSERT_TRUE(WriteVariables(graphs[0], *session.variables).ok());
  for (int run = 0; run < kRuns; ++run) ASSERT_TRUE(executable->Run(inputs[run], nullptr).ok());
  const RunResult single = read();
  ASSERT_TRUE(WriteVariables(graphs[0], *session.variables).ok());
  int next = 0;
  const auto inputs_of = [&](int64_t) { return absl::MakeConstSpan(inputs[next++]); };
  // A single run between longer series.
  for (const int64_t runs : {7, 1, 4}) ASSERT_TRUE(executable->RunSeveral(runs, inputs_of, nullptr).ok());
  ExpectSameBits(read(), single);
}

TEST_P(DeviceConformance, ReducesOverOneRank) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const CaseGraph graph = TrainingCase(device->dtype(), 4, 0.5);
  const absl::StatusOr<RunResult> alone = RunCaseOn(*device, graph);
  Session session(GetParam().make(0));
  Executable* executable = session.Compile(graph);
  ASSERT_NE(executable, nullptr);
  ASSERT_TRUE(WriteVariables(graph, *session.variables).ok());
  const auto communicators = CreateThreadCommunicators(1);
  const absl::StatusOr<RunResult> grouped =
      RunCase(graph, *executable, *session.variables, communicators[0].get());
  ASSERT_TRUE(alone.ok() && grouped.ok()) << alone.status() << grouped.status();
  ExpectSameBits(*grouped, *alone);
}

TEST_P(DeviceConformance, ReducesOverTwoRanks) {
  const std::vector<double> shares = {0.625, 0.375};
  const std::vector<int64_t> batches = {5, 3};
  const auto train = [&](const std::function<std::unique_ptr<Device>(int)>& make, int buckets) {
    std::vector<RunResult> results(2);
    const auto communicators = CreateThreadCommunicators(2);
    std::vector<std::unique_ptr<Device>> devices;
    std::vector<std::unique_ptr<Communicator>> wrapped;
    std::vector<std::unique_ptr<Variables>> variables;
    for (int rank = 0; rank < 2; ++rank) {
      devices.push_back(make(rank));
      wrapped.push_back(devices[rank]->WrapCommunicator(communicators[rank].get()));
      variables.push_back(devices[rank]->CreateVariables(rank == 0 ? nullptr : variables[0].get()));
    }
    std::vector<CaseGraph> graphs;
    std::vector<std::unique_ptr<Executable>> executables;
    for (int rank = 0; rank < 2; ++rank) {
      graphs.push_back(TrainingCase(devices[rank]->dtype(), batches[rank], shares[rank], buckets));
      absl::StatusOr<std::unique_ptr<Executable>> compiled =
          devices[rank]->Compile(graphs[rank].graph(), variables[rank].get());
      if (!compiled.ok()) {
        ADD_FAILURE() << compiled.status();
        return results;
      }
      executables.push_back(*std::move(compiled));
      EXPECT_TRUE(WriteVariables(graphs[rank], *variables[rank]).ok());
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        for (int64_t step = 0; step < 3; ++step) {
          SetStep(graphs[rank], step);
          absl::StatusOr<RunResult> result =
              RunCase(graphs[rank], *executables[rank], *variables[rank],
                      wrapped[rank] != nullptr ? wrapped[rank].get() : communicators[rank].get());
          if (!result.ok()) {
            ADD_FAILURE() << result.status();
            communicators[rank]->Abort(result.status());
            return;
          }
          results[rank] = *std::move(result);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  };
  const std::vector<RunResult> actual = train(GetParam().make, 1);
  const std::vector<RunResult> expected = train([](int) { return GetParam().make_reference(); }, 1);
  for (int rank = 0; rank < 2; ++rank) {
    SCOPED_TRACE(rank);
    ExpectNear(actual[rank], expected[rank], 20 * GetParam().tolerance);
  }
  // Reductions in parts give the same bits: ranks are always added in the same order.
  const std::vector<RunResult> in_parts = train(GetParam().make, 3);
  for (int rank = 0; rank < 2; ++rank) ExpectSameBits(in_parts[rank], actual[rank]);
  // Replicas stay equal, bit for bit, except for their own meters.
  for (const auto& [name, value] : actual[0].variables) {
    if (name != "meter") {
      EXPECT_TRUE(SameBits(value, actual[1].variables.at(name))) << name;
    }
  }
}

// A reduction may end as late as its Await. Until then no step uses its elements, and no other buffer shares
// their memory.
TEST_P(DeviceConformance, LeavesAloneWhatIsBeingReduced) {
  if (!GetParam().host_memory) return;
  std::vector<RunResult> results;
  for (const bool is_late : {false, true}) {
    Session session(GetParam().make(0));
    const CaseGraph graph = TrainingCase(session.device->dtype(), 4, 0.5, 4);
    Executable* executable = session.Compile(graph);
    ASSERT_NE(executable, nullptr);
    ASSERT_TRUE(WriteVariables(graph, *session.variables).ok());
    LateCommunicator communicator(is_late);
    for (int step = 0; step < 3; ++step) {
      const absl::StatusOr<RunResult> result = RunCase(graph, *executable, *session.variables, &communicator);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(communicator.going_on(), 0);
      if (step == 2) results.push_back(*result);
    }
    EXPECT_EQ(communicator.touched(), 0);
    EXPECT_GE(communicator.reductions(), 3 * 4);
  }
  ExpectSameBits(results[1], results[0]);
}

// A failed run awaits its begun reductions before it returns.
TEST_P(DeviceConformance, AFailedRunLeavesNoReductionBehind) {
  if (!GetParam().host_memory) return;
  for (const int failing : {0, 1, 3}) {
    Session session(GetParam().make(0));
    const CaseGraph graph = TrainingCase(session.device->dtype(), 4, 0.5, 4);
    Executable* executable = session.Compile(graph);
    ASSERT_NE(executable, nullptr);
    LateCommunicator communicator(/*is_late=*/true);
    communicator.FailAt(failing, absl::DataLossError("a cable was cut"));
    EXPECT_EQ(RunCase(graph, *executable, *session.variables, &communicator).status(),
              absl::DataLossError("a cable was cut"));
    EXPECT_EQ(communicator.going_on(), 0);
    EXPECT_EQ(communicator.touched(), 0);
  }
}

TEST_P(DeviceConformance, PassesOnAFailedReduction) {
  const std::unique_ptr<Device> device = GetParam().make(0);
  const CaseGraph graph = TrainingCase(device->dtype(), 4, 0.5);
  const std::unique_ptr<Variables> variables = device->CreateVariables();
  const auto executable = device->Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  const auto communicators = CreateThreadCommunicators(2);
  communicators[1]->Abort(absl::CancelledError("a replica left"));
  const absl::Status status = RunCase(graph, **executable, *variables, communicators[0].get()).status();
  EXPECT_EQ(status, absl::CancelledError("a replica left"));
}

}  // namespace tandem
