#include <memory>
#include <vector>

#include "engine/backend/late_communicator.h"
#include "engine/backend/training_case.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Counts of the reductions of a step with several buckets.
struct Counts {
  int64_t begun = 0;
  int64_t most_going_on = 0;
};

Counts CountsOf(int buckets) {
  CpuDevice device("cpu:0", 1);
  const CaseGraph graph = TrainingCase(DType::kFloat32, 4, 0.5, buckets);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const auto executable = device.Compile(graph.graph(), variables.get());
  EXPECT_TRUE(executable.ok()) << executable.status();
  LateCommunicator communicator(/*is_late=*/true);
  EXPECT_TRUE(RunCase(graph, **executable, *variables, &communicator).ok());
  EXPECT_EQ(communicator.reductions(), buckets);
  return {communicator.begun(), communicator.most_going_on()};
}

// Each bucket of this network is complete before the gradients of other buckets are computed. Its first
// gradient is read after the whole backward pass.
TEST(CpuReductionsTest, ReductionsGoOnBesideTheBackwardPass) {
  EXPECT_EQ(CountsOf(4).most_going_on, 4);
  EXPECT_EQ(CountsOf(2).most_going_on, 2);
  EXPECT_EQ(CountsOf(4).begun, 4);
}

// If the next step reads the result, the reduction runs at once, without another thread.
TEST(CpuReductionsTest, OneThatIsReadNextDoesNotBegin) { EXPECT_EQ(CountsOf(1).begun, 0); }

// The profile is by step, and names the awaiting steps.
TEST(CpuReductionsTest, EachBucketIsAwaitedBeforeItsOwnUpdates) {
  CpuDevice device("cpu:0", 1);
  const CaseGraph graph = TrainingCase(DType::kFloat32, 4, 0.5, 4);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const auto executable = device.Compile(graph.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  auto& cpu = static_cast<cpu::CpuExecutable&>(**executable);
  cpu.StartProfile();
  LateCommunicator communicator(/*is_late=*/true);
  ASSERT_TRUE(RunCase(graph, cpu, *variables, &communicator).ok());
  int begun = 0, awaited = 0, updated = 0;
  for (const StepTime& step : cpu.profile()) {
    if (step.name == "all_reduce") ++begun;
    if (step.name == "all_reduce: await") {
      EXPECT_EQ(begun, 4);
      // A bucket has two parameters.
      EXPECT_EQ(updated, 2 * awaited);
      ++awaited;
    }
    if (step.name.find("sgd") != std::string::npos) ++updated;
  }
  EXPECT_EQ(awaited, 4);
  EXPECT_EQ(updated, 8);
}

}  // namespace
}  // namespace tandem
