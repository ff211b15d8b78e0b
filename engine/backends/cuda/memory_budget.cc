#include "engine/backends/cuda/memory_budget.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tandem::cuda {

BudgetedMemory::~BudgetedMemory() {
  if (budget_ != nullptr) budget_->held_.*group_ -= memory_.bytes();
}

absl::StatusOr<BudgetedMemory> MemoryBudget::Allocate(int64_t MemoryGroups::*group, int64_t bytes) {
  absl::Status why;
  if (limit_bytes_ > 0 && held_.total() + bytes > limit_bytes_) {
    why = absl::ResourceExhaustedError(
        absl::StrCat("gpu.memory_limit_bytes lets a replica take ", MebibytesOf(limit_bytes_)));
  } else {
    absl::StatusOr<DeviceMemory> memory = DeviceMemory::Allocate(bytes);
    if (memory.ok()) {
      BudgetedMemory budgeted;
      budgeted.memory_ = *std::move(memory);
      budgeted.budget_ = this;
      budgeted.group_ = group;
      held_.*group += budgeted.bytes();
      return budgeted;
    }
    why = memory.status();
  }
  if (!absl::IsResourceExhausted(why)) return why;
  const absl::StatusOr<int64_t> free = FreeBytes();
  const std::string held = held_.ToString();
  return absl::ResourceExhaustedError(
      absl::StrCat(why.message(), ": it has ", MebibytesOf(held_.total()),
                   held.empty() ? "" : absl::StrCat(" (", held, ")"), " and needs ", MebibytesOf(bytes),
                   " more for ", MemoryGroups::NameOf(group),
                   free.ok() ? absl::StrCat("; ", MebibytesOf(*free), " of the GPU are free") : ""));
}

}  // namespace tandem::cuda
