#include "engine/backends/cpu/cpu_device.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/backend/workspace.h"
#include "engine/backends/cpu/cpu_executable.h"
#include "engine/backends/cpu/cpu_variables.h"
#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/lowering.h"
#include "engine/backends/cpu/onednn.h"
#include "engine/base/status_macros.h"
#include "engine/graph/memory_plan.h"

namespace tandem {
namespace {

// A misspelt name would run with a speed and rounding that nobody requested.
absl::Status CheckAskedIsa() {
  const char* asked = std::getenv("TANDEM_CPU_ISA");
  if (asked == nullptr || cpu::IsKnownIsa(asked)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("TANDEM_CPU_ISA in the environment is \"", asked,
                                                 "\"; it must be avx512, avx2 or baseline, or not be set"));
}

}  // namespace

CpuDevice::CpuDevice(std::string name, int threads, DType compute)
    : name_(std::move(name)), team_(threads), compute_(compute) {}

bool CpuDevice::OffersBFloat16() {
  return __builtin_cpu_supports("avx512bf16") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}

std::unique_ptr<Variables> CpuDevice::CreateVariables(const Variables* like) {
  return std::make_unique<cpu::CpuVariables>(like);
}

absl::StatusOr<std::unique_ptr<Executable>> CpuDevice::Compile(const Graph& graph, Variables* variables) {
  TANDEM_RETURN_IF_ERROR(CheckAskedIsa());
  if (compute_ == DType::kBFloat16 && !OffersBFloat16()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, ": this processor has no instructions for bfloat16 (AVX512_BF16)"));
  }
  if (compute_ == DType::kFloat16) {
    return absl::FailedPreconditionError(
        absl::StrCat(name_, ": processors do not compute in float16; give float32 or bfloat16"));
  }
  auto* cpu_variables = static_cast<cpu::CpuVariables*>(variables);
  TANDEM_RETURN_IF_ERROR(CheckOffered(graph, cpu::CpuBackend::kName, cpu::FindLower));
  TANDEM_RETURN_IF_ERROR(cpu_variables->Declare(graph));
  // oneDNN reads the team's size when a primitive is created.
  const cpu::ScopedTeam scoped_team(team_);
  const int64_t planned = PlanMemory(graph).arena_bytes;
  // Returns the executable's part of kWorkspaceCapBytes.
  const auto beyond_plan = [planned](const cpu::CpuExecutable& executable) {
    return executable.bytes() - planned - WorkspaceShareBytes(planned);
  };
  std::unique_ptr<cpu::CpuExecutable> best;  // The executable with the least memory.
  TANDEM_RETURN_IF_ERROR(cpu::CallOneDnn([&]() -> absl::Status {
    for (const cpu::Algorithms algorithms : {cpu::Algorithms::kFastest, cpu::Algorithms::kSmallScratch,
                                             cpu::Algorithms::kWithoutWinograd, cpu::Algorithms::kOneDnn}) {
      cpu::Lowering lowering(graph, cpu_variables, team_, algorithms, compute_);
      TANDEM_RETURN_IF_ERROR(lowering.LowerGraph());
      TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<cpu::CpuExecutable> made, cpu::CpuExecutable::Plan(lowering));
      if (best == nullptr || made->bytes() < best->bytes()) best = std::move(made);
      const int64_t workspace =
          *cpu_variables->workspace_bytes() + cpu_variables->padding_bytes() + beyond_plan(*best);
      if (workspace <= kWorkspaceCapBytes) break;
    }
    return best->Allocate(beyond_plan(*best), cpu_variables->workspace_bytes());
  }));
  return std::unique_ptr<Executable>(std::move(best));
}

}  // namespace tandem
