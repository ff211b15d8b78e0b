#ifndef TANDEM_ENGINE_BACKENDS_CUDA_MEMORY_BUDGET_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_MEMORY_BUDGET_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/backend/memory_groups.h"
#include "engine/backends/cuda/driver/driver.h"

namespace tandem::cuda {

class MemoryBudget;

// Device memory that counts in a budget, which must outlive it. A value that owns it.
class BudgetedMemory {
 public:
  BudgetedMemory() = default;
  ~BudgetedMemory();
  BudgetedMemory(BudgetedMemory&& other) noexcept { *this = std::move(other); }
  BudgetedMemory& operator=(BudgetedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(budget_, other.budget_);
    std::swap(group_, other.group_);
    return *this;
  }
  std::byte* data() const { return memory_.data(); }
  int64_t bytes() const { return memory_.bytes(); }

 private:
  friend class MemoryBudget;
  DeviceMemory memory_;
  MemoryBudget* budget_ = nullptr;
  int64_t MemoryGroups::*group_ = nullptr;
};

// A replica's use of its GPU's memory, with a limit. Used by a single thread at a time.
class MemoryBudget {
 public:
  // 0: no limit.
  explicit MemoryBudget(int64_t limit_bytes = 0) : limit_bytes_(limit_bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // Allocates memory of the thread's device. RESOURCE_EXHAUSTED with the used and free bytes if the limit or
  // the GPU does not allow it.
  absl::StatusOr<BudgetedMemory> Allocate(int64_t MemoryGroups::*group, int64_t bytes);
  const MemoryGroups& held() const { return held_; }
  // Returns the rest of the limit, or without a limit more than any memory.
  int64_t room() const {
    return limit_bytes_ > 0 ? limit_bytes_ - held_.total() : std::numeric_limits<int64_t>::max();
  }

 private:
  friend class BudgetedMemory;
  const int64_t limit_bytes_;
  MemoryGroups held_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_MEMORY_BUDGET_H_
