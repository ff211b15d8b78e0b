#ifndef TANDEM_ENGINE_BACKENDS_CPU_LANES_H_
#define TANDEM_ENGINE_BACKENDS_CPU_LANES_H_

#include <cstdint>

#include "engine/backends/cpu/kernels/kernels.h"
#include "engine/backends/cpu/layout.h"

namespace tandem::cpu {

// The common form of plain and batch-blocked tensors: [blocks][...][lanes]. In a plain tensor a block is a
// sample, with a single lane.
struct Lanes {
  int64_t blocks = 0;
  int64_t lanes = 1;

  Layout LayoutOf(const Shape& shape) const {
    return lanes == 1 ? Layout::Plain(DType::kFloat32, shape) : Layout::BatchBlocked(DType::kFloat32, shape);
  }
};

// Returns the lanes of `layout`, which has at least one dimension. Any layout other than batch-blocked counts
// as plain.
inline Lanes LanesOf(const Layout& layout) {
  const int64_t samples = layout.shape()[0];
  if (layout.batch_blocked()) return {.blocks = (samples + kBlock - 1) / kBlock, .lanes = kBlock};
  return {.blocks = samples, .lanes = 1};
}

// Returns the product of the extents from `begin` to before `end`.
inline int64_t ExtentOf(const Shape& shape, int begin, int end) {
  int64_t extent = 1;
  for (int i = begin; i < end; ++i) extent *= shape[i];
  return extent;
}

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_LANES_H_
