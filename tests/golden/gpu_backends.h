#ifndef TANDEM_TESTS_GOLDEN_GPU_BACKENDS_H_
#define TANDEM_TESTS_GOLDEN_GPU_BACKENDS_H_

#include <vector>

#include "tests/golden/runner.h"

namespace tandem {

// "gpu", "gpu-bfloat16" and "gpu-float16", on GPU 0 or on the emulation, as the program was linked; none, and
// a line that says so, where there is no GPU.
std::vector<GoldenBackend> GpuBackends();

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_GPU_BACKENDS_H_
