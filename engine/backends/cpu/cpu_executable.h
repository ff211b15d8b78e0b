#ifndef TANDEM_ENGINE_BACKENDS_CPU_CPU_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CPU_EXECUTABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/executable.h"
#include "engine/backends/cpu/lowering.h"
#include "engine/backends/cpu/memory.h"

namespace tandem::cpu {

class CpuExecutable final : public Executable {
 public:
  // Takes the steps and buffers of `lowering`, and plans its memory without allocating it.
  static absl::StatusOr<std::unique_ptr<CpuExecutable>> Plan(Lowering& lowering);
  ~CpuExecutable() override;

  // Allocates the memory. Call it a single time, before Run. `beyond_plan` is its part of kWorkspaceCapBytes,
  // negative if it takes less than planned. It is added to `*workspace_bytes` for the executable's lifetime.
  absl::Status Allocate(int64_t beyond_plan, std::shared_ptr<int64_t> workspace_bytes);

  absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override;
  absl::StatusOr<Tensor> Output(int i) const override;
  std::string notice() const override { return notice_; }
  int64_t bytes() const override { return arena_bytes_ + constant_bytes_; }

  // The time of a step over all runs since StartProfile.
  struct StepTime {
    std::string name;
    int64_t runs = 0;
    double total_seconds = 0;
    double best_seconds = 0;
  };
  // Times every step from now on. Off by default, because reading the clock takes time.
  void StartProfile();
  const std::vector<StepTime>& profile() const { return profile_; }

 private:
  explicit CpuExecutable(const Team& team) : team_(team) {}
  absl::Status PlanMemoryOf(Lowering& lowering);
  absl::Status RunProfiled(const RunContext& context);

  const Team team_;
  std::vector<Step> steps_;
  BegunReductions reductions_;
  std::vector<cpu::Place> outputs_;
  std::vector<Buffer> planned_buffers_;
  std::vector<int64_t> arena_offsets_;  // By buffer. -1 outside the arena.
  int64_t arena_bytes_ = 0;
  int64_t constant_bytes_ = 0;
  int64_t beyond_plan_ = 0;
  std::shared_ptr<int64_t> workspace_bytes_;
  Memory arena_;
  Memory constants_;
  std::vector<std::byte*> buffers_;  // By buffer.
  std::vector<int> input_buffers_;   // By input.
  std::string notice_;
  bool has_run_ = false;
  bool profiling_ = false;
  std::vector<StepTime> profile_;  // By step.
};

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CPU_EXECUTABLE_H_
