#ifndef TANDEM_ENGINE_BACKENDS_CUDA_STEP_ORDER_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_STEP_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "engine/backends/cuda/driver/driver.h"

namespace tandem::cuda {

// Finds the earlier steps that a step must wait for; all other steps may run at the same time. A step waits
// for an earlier step if both use the same memory and one of them writes it.
class StepOrder {
 public:
  // Adds the next step. Returns the numbers of the steps that it must wait for, ascending; the first step is
  // number 0. Leaves out a step if another of them waits for it.
  std::vector<int> Add(absl::Span<const MemoryRange> reads, absl::Span<const MemoryRange> writes);

 private:
  // The newest use of a piece of memory.
  struct Use {
    const std::byte* end = nullptr;
    int writer = -1;                // -1: none.
    std::vector<int> readers = {};  // Since this write.
  };
  using Uses = std::map<const std::byte*, Use>;  // By the beginning. Pieces do not overlap.

  // Splits and adds pieces so that they fill the range exactly. Returns its first piece.
  Uses::iterator Fill(const MemoryRange& range);
  // Splits the piece that contains `place` in two, unless a piece begins there.
  void SplitAt(const std::byte* place);

  Uses uses_;
  // By step: a bit for each earlier step. It is set if the step waits for it, directly or indirectly.
  std::vector<std::vector<uint64_t>> before_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_STEP_ORDER_H_
