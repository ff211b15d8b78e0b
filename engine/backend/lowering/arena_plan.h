#ifndef TANDEM_ENGINE_BACKEND_LOWERING_ARENA_PLAN_H_
#define TANDEM_ENGINE_BACKEND_LOWERING_ARENA_PLAN_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tandem {

// The buffers that a step of an executable reads and writes as a whole. A step may write a part of a buffer
// that an earlier step wrote. The rest of the buffer stays.
struct StepUse {
  std::string name;  // For errors.
  std::vector<int> reads;
  std::vector<int> writes;
  // Pairs (write, read) of positions: the written buffer may reuse the memory of the read buffer.
  std::vector<std::pair<int, int>> in_place;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  // By buffer. -1 for a buffer outside the arena or without a writer.
  int64_t bytes = 0;
};

// Places buffers in a single arena so that each step finds its inputs. It is PlanMemory for the steps that a
// backend made of a graph. `buffer_bytes` is negative for a buffer outside the arena. `outputs` live to the
// end. INTERNAL if a step reads a buffer that no earlier step wrote.
absl::StatusOr<ArenaPlan> PlanArena(absl::Span<const int64_t> buffer_bytes, absl::Span<const StepUse> steps,
                                    absl::Span<const int> outputs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_LOWERING_ARENA_PLAN_H_
