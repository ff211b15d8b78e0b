#include "engine/backends/cuda/memory_budget.h"

#include <memory>
#include <string>

#include "engine/backend/training_case.h"
#include "engine/backends/cuda/cuda_device.h"
#include "engine/backends/cuda/driver/measure.h"
#include "engine/backends/cuda/lowering.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMebibyte = 1 << 20;

TEST(MemoryBudgetTest, CountsWhatIsHeldUntilItGoes) {
  MemoryBudget budget(10 * kMebibyte);
  auto parameters = budget.Allocate(&MemoryGroups::parameters, 4 * kMebibyte);
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  {
    const auto activations = budget.Allocate(&MemoryGroups::activations, 6 * kMebibyte);
    ASSERT_TRUE(activations.ok()) << activations.status();
    const absl::Status more = budget.Allocate(&MemoryGroups::data, 1).status();
    EXPECT_EQ(more.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(more.message()),
                AllOf(HasSubstr("gpu.memory_limit_bytes lets a replica take 10.0 MiB"),
                      HasSubstr("it has 10.0 MiB (activations 6.0 MiB, parameters 4.0 MiB)"),
                      HasSubstr("needs 0.0 MiB more for data"), HasSubstr("of the GPU are free")));
  }
  EXPECT_EQ(budget.held().total(), 4 * kMebibyte);
  EXPECT_EQ(budget.room(), 6 * kMebibyte);
  parameters = BudgetedMemory();
  EXPECT_EQ(budget.held().total(), 0);
  EXPECT_TRUE(budget.Allocate(&MemoryGroups::data, 10 * kMebibyte).ok());
}

TEST(MemoryBudgetTest, AlgorithmsAreMeasuredInWhatIsLeft) {
  MemoryBudget budget(10 * kMebibyte);
  const LibraryOptions options = {.room = [&] { return budget.room(); }};
  EXPECT_TRUE(CheckRoom(options, 10 * kMebibyte).ok());
  const auto parameters = budget.Allocate(&MemoryGroups::parameters, 4 * kMebibyte);
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_TRUE(CheckRoom(options, 6 * kMebibyte).ok());
  EXPECT_EQ(CheckRoom(options, 6 * kMebibyte + 1).code(), absl::StatusCode::kResourceExhausted);
  // Without a limit, the device decides.
  EXPECT_TRUE(CheckRoom({}, int64_t{1} << 60).ok());
  EXPECT_GT(MemoryBudget().room(), int64_t{1} << 60);
}

// Returns the bytes of the training case on a GPU with this limit.
absl::StatusOr<int64_t> Compile(int64_t limit) {
  const auto device = CudaDevice::Open("gpu:0", 0, {.memory_limit_bytes = limit});
  if (!device.ok()) return device.status();
  const CaseGraph training = TrainingCase(DType::kFloat32, 16);
  const std::unique_ptr<Variables> variables = (*device)->CreateVariables();
  const auto executable = (*device)->Compile(training.graph(), variables.get());
  if (!executable.ok()) return executable.status();
  return variables->bytes() + (*executable)->bytes();
}

TEST(MemoryBudgetTest, AReplicaKeepsToItsLimit) {
  const absl::StatusOr<int64_t> bytes = Compile(0);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_TRUE(Compile(*bytes).ok());
  const absl::Status one_less = Compile(*bytes - 1).status();
  EXPECT_EQ(one_less.code(), absl::StatusCode::kResourceExhausted) << one_less;
  const absl::Status none = Compile(1).status();
  EXPECT_EQ(none.code(), absl::StatusCode::kResourceExhausted) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("variable \""));
}

// The budget is in the context. The variables' memory counts in it until the memory is freed.
TEST(MemoryBudgetTest, VariablesThatOutliveTheirDeviceKeepTheirBudget) {
  int64_t held_at_end = -1;
  std::shared_ptr<DeviceContext> context(new DeviceContext, [&](DeviceContext* ending) {
    held_at_end = ending->memory.held().total();
    delete ending;
  });
  context->stream = *OwnedStream::Create();
  context->blas = *CreateBlas({});
  context->dnn = *CreateDnn({});
  std::unique_ptr<CudaDevice> device = CudaDevice::Over("gpu:0", std::move(context));
  const CaseGraph training = TrainingCase(DType::kFloat32, 4);
  std::unique_ptr<Variables> variables = device->CreateVariables();
  ASSERT_TRUE(device->Compile(training.graph(), variables.get()).ok());
  ASSERT_GT(variables->bytes(), 0);
  device.reset();
  EXPECT_EQ(held_at_end, -1);
  variables.reset();
  EXPECT_EQ(held_at_end, 0);
}

TEST(MemoryBudgetTest, WorkspacesKeepToTheirLimit) {
  const CaseGraph training = TrainingCase(DType::kFloat32, 64);
  const auto cap = [&](int64_t limit) {
    auto context = std::make_shared<DeviceContext>();
    context->options.workspace_limit_bytes = limit;
    CudaVariables variables(context, /*like=*/nullptr);
    return Lowering(training.graph(), &variables, context.get()).workspace_cap();
  };
  EXPECT_GT(cap(0), kMebibyte);
  EXPECT_LE(cap(0), kGpuWorkspaceLimitBytes);
  EXPECT_EQ(cap(1000), 1000);
  EXPECT_EQ(cap(int64_t{1} << 40), cap(0));
}

}  // namespace
}  // namespace tandem::cuda
