// A process to which Linux refuses the tile registers: a filter of system calls takes Linux's place.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "engine/backend/op_cases.h"
#include "engine/backends/cpu/cpu_device.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/backends/cpu/kernels/tiles.h"
#include "engine/backends/reference/reference_device.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/linear.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// Lets each request for permission (ARCH_REQ_XCOMP_PERM) of this process fail with EPERM.
bool RefuseTiles() {
  constexpr uint32_t kRequestPermission = 0x1023;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kRequestPermission, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

CaseGraph ConvolutionAndProduct(DType dtype) {
  CaseGraph g(dtype);
  g.Add(std::make_shared<Conv2dOp>(Conv2dGeometry{.padding = {1, 1}}),
        {g.Input("x", {16, 32, 5, 5}), g.Variable("kernel", {32, 32, 3, 3})});
  g.Add(std::make_shared<LinearOp>(), {g.Input("rows", {8, 4, 64}), g.Variable("weight", {48, 64})});
  return g;
}

TEST(RefusedTilesTest, ComputesByAvx512AndSaysSo) {
  ASSERT_TRUE(RefuseTiles());
  if (!CpuDevice::OffersBFloat16()) GTEST_SKIP() << "the processor has no instructions for bfloat16";
  ASSERT_NE(cpu::BestTileKernels(), nullptr);
  EXPECT_STREQ(cpu::BestTileKernels()->isa, "avx512_bf16");
  const CaseGraph narrow = ConvolutionAndProduct(DType::kFloat32);
  const CaseGraph exact = ConvolutionAndProduct(DType::kFloat64);
  CpuDevice device("cpu:0", 1, DType::kBFloat16);
  const std::unique_ptr<Device> reference = CreateReferenceDevice();
  const absl::StatusOr<RunResult> expected = RunCaseOn(*reference, exact);
  const absl::StatusOr<RunResult> actual = RunCaseOn(device, narrow);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(actual.ok()) << actual.status();
  for (size_t i = 0; i < expected->outputs.size(); ++i) {
    EXPECT_LE(RelativeError(actual->outputs[i], expected->outputs[i]), 1e-2) << "output " << i;
  }

  const std::unique_ptr<Variables> variables = device.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> executable =
      device.Compile(narrow.graph(), variables.get());
  ASSERT_TRUE(executable.ok()) << executable.status();
  auto& compiled = static_cast<cpu::CpuExecutable&>(**executable);
  // A processor without AMX has nothing to refuse.
  if (cpu::FindTileSupport() != cpu::TileSupport::kRefused) {
    EXPECT_EQ(compiled.notice(), "");
    return;
  }
  EXPECT_THAT(compiled.notice(), HasSubstr("cannot compute bfloat16 by AMX: Linux refuses"));
  CpuDevice wide("cpu:1", 1);
  const std::unique_ptr<Variables> others = wide.CreateVariables();
  const absl::StatusOr<std::unique_ptr<Executable>> exactly = wide.Compile(narrow.graph(), others.get());
  ASSERT_TRUE(exactly.ok()) << exactly.status();
  EXPECT_EQ((*exactly)->notice(), "");
}

}  // namespace
}  // namespace tandem
