#ifndef TANDEM_TESTS_GOLDEN_GPU_BACKENDS_H_
#define TANDEM_TESTS_GOLDEN_GPU_BACKENDS_H_

#include <vector>

#include "tests/golden/runner.h"

namespace tandem {

// Returns "gpu", "gpu-bfloat16" and "gpu-float16", on GPU 0 or on the emulation, depending on the linked
// driver. Without a GPU, prints a line and returns none.
std::vector<GoldenBackend> GpuBackends();

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_GPU_BACKENDS_H_
