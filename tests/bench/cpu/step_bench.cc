// How long a training step of LeNet takes on the CPU backend alone, without data loading or reports, and
// which of its steps take the time:
//   bazel run -c opt //tests/bench/cpu:step_bench -- --replicas=2 --batch=128 --steps=200 --profile

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/base/status_macros.h"
#include "engine/collectives/local/local_group.h"
#include "engine/graph/autodiff.h"
#include "engine/graph/ops/accumulate.h"
#include "engine/graph/ops/all_reduce.h"
#include "engine/graph/ops/classification.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/linear.h"
#include "engine/graph/ops/normalize.h"
#include "engine/graph/ops/pooling.h"
#include "engine/graph/ops/reshape.h"
#include "engine/graph/ops/sgd.h"

namespace tandem {
namespace {

struct Settings {
  int replicas = 1;
  int threads = 1;
  int64_t batch = 128;
  int steps = 100;
  bool profile = false;
};

bool ReadFlag(const std::string& argument, absl::string_view name, int64_t* value) {
  const std::string prefix = absl::StrCat("--", name, "=");
  if (argument.rfind(prefix, 0) != 0) return false;
  *value = std::atoll(argument.c_str() + prefix.size());
  return true;
}

Settings ReadSettings(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    int64_t value = 0;
    if (ReadFlag(argv[i], "replicas", &value)) settings.replicas = static_cast<int>(value);
    if (ReadFlag(argv[i], "threads", &value)) settings.threads = static_cast<int>(value);
    if (ReadFlag(argv[i], "batch", &value)) settings.batch = value;
    if (ReadFlag(argv[i], "steps", &value)) settings.steps = static_cast<int>(value);
    if (std::string(argv[i]) == "--profile") settings.profile = true;
  }
  return settings;
}

// Inputs: images uint8 [batch, 1, 28, 28], labels, learning rate, step.
absl::StatusOr<Graph> LeNet(int64_t batch, double share) {
  Graph graph;
  std::vector<ValueId> parameters;
  const auto parameter = [&](const char* name, Shape shape) {
    parameters.push_back(
        graph.AddVariable(name, VariableKind::kParameter, DType::kFloat32, std::move(shape)));
    return parameters.back();
  };
  const auto pool = [&](ValueId x) -> absl::StatusOr<ValueId> {
    TANDEM_ASSIGN_OR_RETURN(
        const std::vector<ValueId> outputs,
        graph.AddNode(std::make_shared<MaxPool2dOp>(PoolGeometry{{2, 2}, {2, 2}, {0, 0}}), {x}));
    return outputs[0];
  };
  const ValueId image = graph.AddInput("image", DType::kUInt8, {batch, 1, 28, 28});
  const ValueId label = graph.AddInput("label", DType::kInt32, {batch});
  const ValueId rate = graph.AddInput("learning_rate", DType::kFloat64, {});
  const ValueId step = graph.AddInput("step", DType::kInt64, {});
  TANDEM_ASSIGN_OR_RETURN(ValueId x,
                          graph.Add(std::make_shared<NormalizeOp>(1.0 / 255, std::vector<double>{0.0},
                                                                  std::vector<double>{1.0}, DType::kFloat32),
                                    {image}));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{}),
                                       {x, parameter("0.weight", {20, 1, 5, 5}), parameter("0.bias", {20})}));
  TANDEM_ASSIGN_OR_RETURN(x, pool(x));
  TANDEM_ASSIGN_OR_RETURN(x,
                          graph.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{}),
                                    {x, parameter("2.weight", {50, 20, 5, 5}), parameter("2.bias", {50})}));
  TANDEM_ASSIGN_OR_RETURN(x, pool(x));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(std::make_shared<ReshapeOp>(Shape({batch, 800})), {x}));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(std::make_shared<LinearOp>(),
                                       {x, parameter("4.weight", {500, 800}), parameter("4.bias", {500})}));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(std::make_shared<ReluOp>(), {x}));
  TANDEM_ASSIGN_OR_RETURN(x, graph.Add(std::make_shared<LinearOp>(),
                                       {x, parameter("5.weight", {10, 500}), parameter("5.bias", {10})}));
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> loss,
                          graph.AddNode(std::make_shared<SoftmaxCrossEntropyOp>(), {x, label}));
  TANDEM_ASSIGN_OR_RETURN(const ValueId correct, graph.Add(std::make_shared<CountCorrectOp>(), {x, label}));
  const ValueId meter = graph.AddVariable("meter", VariableKind::kMeter, DType::kFloat64, {2});
  TANDEM_RETURN_IF_ERROR(
      graph
          .AddNode(std::make_shared<AccumulateOp>(std::vector<double>{static_cast<double>(batch), 1.0}),
                   {meter, loss[0], correct})
          .status());
  TANDEM_ASSIGN_OR_RETURN(const std::vector<ValueId> grads, AppendGradients(graph, loss[0], parameters));
  TANDEM_ASSIGN_OR_RETURN(
      const std::vector<ValueId> sums,
      graph.AddNode(std::make_shared<AllReduceOp>(share, 0, static_cast<int>(grads.size())), grads));
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value& value = graph.value(parameters[i]);
    const ValueId buffer = graph.AddVariable(absl::StrCat(value.name, ".momentum"),
                                             VariableKind::kOptimizerState, DType::kFloat32, value.shape);
    TANDEM_RETURN_IF_ERROR(
        graph.AddNode(std::make_shared<SgdOp>(0.9, 0, true, 0), {parameters[i], sums[i], rate, step, buffer})
            .status());
  }
  graph.MarkOutput(loss[0]);
  return graph;
}

// A small number that follows from `seed`.
float Noise(uint32_t* seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return static_cast<float>(*seed >> 8) / (1 << 24) - 0.5f;
}

struct Replica {
  std::unique_ptr<CpuDevice> device;
  std::unique_ptr<Variables> variables;
  std::unique_ptr<Executable> executable;
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
  std::vector<double> step_seconds;
  absl::Status status;
};

absl::Status Prepare(const Settings& settings, int64_t batch, int rank, const Variables* like,
                     Replica* replica) {
  replica->device = std::make_unique<CpuDevice>(absl::StrCat("cpu:", rank), settings.threads);
  replica->variables = replica->device->CreateVariables(like);
  TANDEM_ASSIGN_OR_RETURN(const Graph graph, LeNet(batch, 1.0 / settings.replicas));
  TANDEM_ASSIGN_OR_RETURN(replica->executable, replica->device->Compile(graph, replica->variables.get()));
  uint32_t seed = 7;
  for (const ValueId id : graph.variables()) {
    const Value& value = graph.value(id);
    if (value.variable_kind != VariableKind::kParameter) continue;
    Tensor tensor(DType::kFloat32, value.shape);
    for (float& number : tensor.data<float>()) number = 0.1f * Noise(&seed);
    TANDEM_RETURN_IF_ERROR(replica->variables->Write(value.name, tensor));
  }
  seed += rank;
  for (int64_t i = 0; i < batch * 784; ++i)
    replica->images.push_back(static_cast<uint8_t>(Noise(&seed) * 255));
  for (int64_t i = 0; i < batch; ++i) replica->labels.push_back(static_cast<int32_t>(i % 10));
  return absl::OkStatus();
}

void Train(const Settings& settings, Communicator* communicator, Replica* replica) {
  const double rate = 0.01;
  for (int64_t step = 0; step < settings.steps + 5; ++step) {
    if (step == 5 && settings.profile) static_cast<cpu::CpuExecutable&>(*replica->executable).StartProfile();
    const auto start = std::chrono::steady_clock::now();
    const void* inputs[] = {replica->images.data(), replica->labels.data(), &rate, &step};
    replica->status = replica->executable->Run(inputs, communicator);
    if (!replica->status.ok()) return;
    replica->step_seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

absl::Status Main(const Settings& settings) {
  const int64_t batch = settings.batch / settings.replicas;
  std::vector<Replica> replicas(settings.replicas);
  for (int r = 0; r < settings.replicas; ++r) {
    TANDEM_RETURN_IF_ERROR(
        Prepare(settings, batch, r, r == 0 ? nullptr : replicas[0].variables.get(), &replicas[r]));
  }
  const std::vector<std::unique_ptr<Communicator>> group = CreateLocalGroup(settings.replicas);
  std::vector<std::thread> threads;
  for (int r = 0; r < settings.replicas; ++r) {
    threads.emplace_back([&, r] { Train(settings, group[r].get(), &replicas[r]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Replica& replica : replicas) TANDEM_RETURN_IF_ERROR(replica.status);

  if (settings.profile) {
    double total = 0;
    for (const auto& time : static_cast<cpu::CpuExecutable&>(*replicas[0].executable).profile()) {
      std::cout << absl::StrFormat("%-44s best %8.1f us  mean %8.1f us\n", time.name, time.best_seconds * 1e6,
                                   time.total_seconds / time.runs * 1e6);
      total += time.best_seconds;
    }
    std::cout << absl::StrFormat("%-44s best %8.1f us\n", "sum", total * 1e6);
  }
  std::vector<double>& seconds = replicas[0].step_seconds;
  seconds.erase(seconds.begin(), seconds.begin() + 5);
  std::sort(seconds.begin(), seconds.end());
  TANDEM_ASSIGN_OR_RETURN(Tensor loss, replicas[0].executable->Output(0));
  const double images = static_cast<double>(batch) * settings.replicas;
  std::cout << absl::StrFormat(
      "replicas %d, threads %d, batch %d: %.0f images/s at best, %.0f at the median; arena %d bytes; loss "
      "%.6f\n",
      settings.replicas, settings.threads, settings.batch, images / seconds.front(),
      images / seconds[seconds.size() / 2], replicas[0].executable->bytes(), loss.data<float>()[0]);
  return absl::OkStatus();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  const absl::Status status = tandem::Main(tandem::ReadSettings(argc, argv));
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
