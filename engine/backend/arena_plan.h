#ifndef TANDEM_ENGINE_BACKEND_ARENA_PLAN_H_
#define TANDEM_ENGINE_BACKEND_ARENA_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tandem {

// Which buffers a step of an executable reads and writes, whole; a step that writes a part of one that was
// written before keeps the rest.
struct StepUse {
  std::string name;  // For errors.
  std::vector<int> reads;
  std::vector<int> writes;
  // (write, read), positions: that write may take the memory of that read.
  std::vector<std::pair<int, int>> in_place;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // By buffer; -1 for those that are not in the arena, or that nobody writes.
  int64_t bytes = 0;
};

// Places buffers in one arena so that steps, in their order, find what they read: PlanMemory, for what a
// backend made of a graph. `buffer_bytes` is negative for a buffer that lies elsewhere; `outputs` live to the
// end. INTERNAL where a step reads what no step has written.
absl::StatusOr<ArenaPlan> PlanArena(absl::Span<const int64_t> buffer_bytes, absl::Span<const StepUse> steps,
                                    absl::Span<const int> outputs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_ARENA_PLAN_H_
