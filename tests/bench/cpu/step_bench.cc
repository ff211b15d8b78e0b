// Measures a training step of a network on the CPU backend alone, without data loading and reports, and the
// time of each step of its plan:
//   bazel run -c opt //tests/bench/cpu:step_bench -- --network=lenet --replicas=2 --batch=128 --steps=200
//   --profile
// With --profile=kind, steps with the same name are added up, the largest first. Each line then has the limit
// of the steps: the time for their operations, or for their bytes, at the speed of bare loops. Winograd's
// transforms need fewer operations than the op, so their time may be below the limit. With several replicas,
// a step's bytes include the whole bucket of an all-reduce: take --replicas=1 for limits.

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
#include "engine/data/dataset.h"
#include "engine/training/plan.h"
#include "engine/training/step_graph.h"
#include "tests/bench/cpu/machine_limits.h"
#include "tests/bench/networks.h"

namespace tandem {
namespace {

struct Settings {
  std::string network = "lenet";
  std::string dtype = "float32";
  int replicas = 1;
  int threads = 1;
  int64_t batch = 128;
  int steps = 100;
  bool profile = false;
  bool by_kind = false;
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
    const std::string argument = argv[i];
    if (argument.rfind("--network=", 0) == 0) settings.network = argument.substr(10);
    if (argument.rfind("--dtype=", 0) == 0) settings.dtype = argument.substr(8);
    if (argument == "--profile=kind") settings.profile = settings.by_kind = true;
    if (ReadFlag(argv[i], "replicas", &value)) settings.replicas = static_cast<int>(value);
    if (ReadFlag(argv[i], "threads", &value)) settings.threads = static_cast<int>(value);
    if (ReadFlag(argv[i], "batch", &value)) settings.batch = value;
    if (ReadFlag(argv[i], "steps", &value)) settings.steps = static_cast<int>(value);
    if (argument == "--profile") settings.profile = true;
  }
  return settings;
}

// The graph that a replica with `samples` of the batch trains by.
absl::StatusOr<StepGraph> TrainingGraph(const Settings& settings, int64_t samples) {
  TANDEM_ASSIGN_OR_RETURN(v1::JobSpec spec, JobOf(settings.network, 0.01, 0.9));
  spec.mutable_dataset()->mutable_synthetic()->set_train_samples(settings.batch);
  spec.mutable_training()->set_global_batch_size(settings.batch);
  spec.mutable_training()->set_epochs(1);
  spec.mutable_replicas()->set_count(settings.replicas);
  FillDefaults(&spec);
  TANDEM_ASSIGN_OR_RETURN(const DatasetInfo info, DescribeDataset(spec.dataset()));
  return BuildTrainingGraph(
      spec, info, {.samples = samples, .batch_samples = settings.batch, .replicas = settings.replicas});
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
  std::vector<uint8_t> samples;  // Bytes of images, or int32 tokens.
  std::vector<int32_t> targets;
  std::vector<double> step_seconds;
  absl::Status status;
};

absl::Status Prepare(const Settings& settings, int64_t batch, int rank, const Variables* like,
                     Replica* replica) {
  const DType compute = settings.dtype == "bfloat16" ? DType::kBFloat16 : DType::kFloat32;
  replica->device = std::make_unique<CpuDevice>(absl::StrCat("cpu:", rank), settings.threads, compute);
  replica->variables = replica->device->CreateVariables(like);
  TANDEM_ASSIGN_OR_RETURN(const StepGraph step, TrainingGraph(settings, batch));
  const Graph& graph = step.graph;
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
  const Value& samples = graph.value(graph.inputs()[0]);
  const Value& targets = graph.value(graph.inputs()[1]);
  if (SizeOf(samples.dtype) == 1) {
    for (int64_t i = 0; i < samples.shape.elements(); ++i) {
      replica->samples.push_back(static_cast<uint8_t>(Noise(&seed) * 255));
    }
  } else {
    std::vector<int32_t> tokens(samples.shape.elements());
    for (int32_t& token : tokens) token = static_cast<int32_t>((Noise(&seed) + 0.5f) * 255);
    const auto* bytes = reinterpret_cast<const uint8_t*>(tokens.data());
    replica->samples.assign(bytes, bytes + tokens.size() * sizeof(int32_t));
  }
  for (int64_t i = 0; i < targets.shape.elements(); ++i) {
    replica->targets.push_back(static_cast<int32_t>(i % 10));
  }
  return absl::OkStatus();
}

void Train(const Settings& settings, Communicator* communicator, Replica* replica) {
  const double rate = 0.01;
  for (int64_t step = 0; step < settings.steps + 5; ++step) {
    if (step == 5 && settings.profile) static_cast<cpu::CpuExecutable&>(*replica->executable).StartProfile();
    const auto start = std::chrono::steady_clock::now();
    const void* inputs[] = {replica->samples.data(), replica->targets.data(), &rate, &step};
    replica->status = replica->executable->Run(inputs, communicator);
    if (!replica->status.ok()) return;
    replica->step_seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

void PrintProfile(const Settings& settings, const std::vector<StepTime>& times) {
  struct Row {
    StepTime time;
    double limit = 0;  // Seconds.
  };
  MachineLimits machine;
  if (settings.by_kind) {
    machine =
        MeasureLimits(settings.dtype == "bfloat16" ? DType::kBFloat16 : DType::kFloat32, settings.threads);
    std::cout << absl::StrFormat("limits of %d threads: %.0f Gflop/s, %.1f GB/s\n", settings.threads,
                                 machine.flops * 1e-9, machine.bytes * 1e-9);
  }
  std::vector<Row> rows;
  Row total = {.time = {.name = "sum", .runs = 1}};
  const auto add = [](const Row& row, Row* sum) {
    sum->time.flops += row.time.flops;
    sum->time.bytes += row.time.bytes;
    sum->time.best_seconds += row.time.best_seconds;
    sum->time.total_seconds += row.time.total_seconds;
    sum->limit += row.limit;
  };
  for (const StepTime& time : times) {
    Row row = {.time = time};
    row.time.total_seconds /= static_cast<double>(time.runs);
    if (settings.by_kind) {
      row.limit = std::max(time.flops / machine.flops, static_cast<double>(time.bytes) / machine.bytes);
    }
    add(row, &total);
    auto same = std::find_if(rows.begin(), rows.end(),
                             [&](const Row& other) { return other.time.name == time.name; });
    if (settings.by_kind && same != rows.end()) {
      add(row, &*same);
    } else {
      rows.push_back(row);
    }
  }
  if (settings.by_kind) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.time.best_seconds > b.time.best_seconds; });
  }
  rows.push_back(total);
  for (const Row& row : rows) {
    std::cout << absl::StrFormat("%-48s best %8.1f us  mean %8.1f us", row.time.name,
                                 row.time.best_seconds * 1e6, row.time.total_seconds * 1e6);
    if (row.limit > 0) {
      std::cout << absl::StrFormat("  %8.3f Gflop %8.2f MB  limit %8.1f us  %5.2f times",
                                   row.time.flops * 1e-9, static_cast<double>(row.time.bytes) * 1e-6,
                                   row.limit * 1e6, row.time.best_seconds / row.limit);
    }
    std::cout << "\n";
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
    PrintProfile(settings, static_cast<cpu::CpuExecutable&>(*replicas[0].executable).profile());
  }
  std::vector<double>& seconds = replicas[0].step_seconds;
  seconds.erase(seconds.begin(), seconds.begin() + 5);
  std::sort(seconds.begin(), seconds.end());
  TANDEM_ASSIGN_OR_RETURN(const Tensor meter, replicas[0].variables->Read(kTrainingMeter));
  const double images = static_cast<double>(batch) * settings.replicas;
  std::cout << absl::StrFormat(
      "%s %s, replicas %d, threads %d, batch %d: %.0f images/s at best, %.0f at the median; arena %.1f MiB; "
      "mean loss "
      "%.6f\n",
      settings.network, settings.dtype, settings.replicas, settings.threads, settings.batch,
      images / seconds.front(), images / seconds[seconds.size() / 2],
      static_cast<double>(replicas[0].executable->bytes()) / 1048576,
      meter.data<double>()[0] / static_cast<double>(batch * (settings.steps + 5)));
  return absl::OkStatus();
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  const absl::Status status = tandem::Main(tandem::ReadSettings(argc, argv));
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
