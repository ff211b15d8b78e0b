#ifndef TANDEM_ENGINE_BACKENDS_CPU_CPU_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKENDS_CPU_CPU_EXECUTABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/backend/lowering/buffer_places.h"
#include "engine/backend/lowering/lowered_executable.h"
#include "engine/backends/cpu/lowering.h"
#include "engine/backends/cpu/memory.h"

namespace tandem::cpu {

class CpuExecutable final : public LoweredExecutable<CpuBackend> {
 public:
  // Takes the steps and buffers of `lowering`, and plans its memory without allocating it.
  static absl::StatusOr<std::unique_ptr<CpuExecutable>> Plan(Lowering& lowering);
  ~CpuExecutable() override;

  // Allocates the memory. Call it a single time, before Run. `beyond_plan` is its part of kWorkspaceCapBytes,
  // negative if it takes less than planned. It is added to `*workspace_bytes` for the executable's lifetime.
  absl::Status Allocate(int64_t beyond_plan, std::shared_ptr<int64_t> workspace_bytes);

  absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) override;
  std::string notice() const override { return notice_; }
  int64_t bytes() const override { return places_.arena_bytes + places_.constant_bytes; }

  // Times every step from now on. Off by default, because reading the clock takes time.
  void StartProfile() { ResetProfile(); }

 private:
  explicit CpuExecutable(const Team& team) : LoweredExecutable(/*context=*/nullptr), team_(team) {}
  absl::Status RunProfiled(const RunContext& context);
  absl::StatusOr<Tensor> ReadMemory(const Layout& layout, const std::byte* data) const override;

  const Team team_;
  BufferPlaces places_;
  int64_t beyond_plan_ = 0;
  std::shared_ptr<int64_t> workspace_bytes_;
  Memory arena_;
  Memory constants_;
  std::vector<std::byte*> addresses_;  // By buffer.
  std::string notice_;
};

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_CPU_EXECUTABLE_H_
