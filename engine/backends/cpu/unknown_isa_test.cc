#include "engine/backends/cpu/cpu_device.h"
#include "engine/graph/graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// The environment of this test has TANDEM_CPU_ISA=avx5l2.
TEST(UnknownIsaTest, IsAnErrorThatSaysWhatMayBeAskedFor) {
  CpuDevice device("cpu:0", 1);
  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::Status status = device.Compile(Graph(), variables.get()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr("\"avx5l2\"; it must be avx512, avx2 or baseline"));
}

}  // namespace
}  // namespace tandem
