#ifndef TANDEM_TESTS_BENCH_CPU_MACHINE_LIMITS_H_
#define TANDEM_TESTS_BENCH_CPU_MACHINE_LIMITS_H_

#include "engine/tensor/dtype.h"

namespace tandem {

// The speed of some threads together, as measured by bare loops.
struct MachineLimits {
  double flops = 0;  // Multiplications and additions a second, without reading memory.
  double bytes = 0;  // Bytes a second that sums of arrays of 192 MiB read and write.
};

// Measures for about a second with so many threads. For bfloat16, products take AMX if the CPU backend takes
// AMX, else AVX-512, else they are float32. The processor must have AVX2 and FMA. Call from a single thread.
MachineLimits MeasureLimits(DType dtype, int threads);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCH_CPU_MACHINE_LIMITS_H_
