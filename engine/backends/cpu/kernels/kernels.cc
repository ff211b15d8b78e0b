#include "engine/backends/cpu/kernels/kernels.h"

#include <cstdlib>
#include <cstring>

namespace tandem::cpu {

extern const Kernels kAvx512Kernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kBaselineKernels;

namespace {

struct Offered {
  const Kernels* kernels[4] = {};
};

Offered FindOffered() {
  Offered offered;
  int count = 0;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    offered.kernels[count++] = &kAvx512Kernels;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    offered.kernels[count++] = &kAvx2Kernels;
  }
  offered.kernels[count++] = &kBaselineKernels;
  return offered;
}

}  // namespace

const Kernels* const* AllKernels() {
  static const Offered offered = FindOffered();
  return offered.kernels;
}

bool IsKnownIsa(const char* isa) {
  const Kernels* const known[] = {&kAvx512Kernels, &kAvx2Kernels, &kBaselineKernels};
  for (const Kernels* kernels : known) {
    if (std::strcmp(kernels->isa, isa) == 0) return true;
  }
  return false;
}

const Kernels& BestKernels() {
  static const Kernels* const best = [] {
    const Kernels* const* all = AllKernels();
    if (const char* asked = std::getenv("TANDEM_CPU_ISA"); asked != nullptr) {
      for (const Kernels* const* k = all; *k != nullptr; ++k) {
        if (std::strcmp((*k)->isa, asked) == 0) return *k;
      }
    }
    return all[0];
  }();
  return *best;
}

}  // namespace tandem::cpu
