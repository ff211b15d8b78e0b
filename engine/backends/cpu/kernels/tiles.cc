#include "engine/backends/cpu/kernels/tiles.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "engine/backends/cpu/kernels/kernels.h"

namespace tandem::cpu {

extern const TileKernels kAmxTileKernels;
extern const TileKernels kAvx512TileKernels;

namespace {

// Of arch_prctl, from Linux's <asm/prctl.h>.
constexpr int kRequestPermission = 0x1023;
constexpr int kTileData = 18;

// The loops over tiles have AVX-512 and its conversions to bfloat16.
bool UsesAvx512() {
  return std::strcmp(BestKernels().isa, "avx512") == 0 && __builtin_cpu_supports("avx512bf16") != 0;
}

bool ProcessorHasAmx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kAmxBfloat16 = 1U << 22;
  constexpr unsigned kAmxTile = 1U << 24;
  return (d & kAmxBfloat16) != 0 && (d & kAmxTile) != 0;
}

}  // namespace

TileSupport FindTileSupport() {
  static const TileSupport support = [] {
    if (!ProcessorHasAmx() || !UsesAvx512()) return TileSupport::kMissing;
    if (std::getenv("TANDEM_CPU_ISA") != nullptr) return TileSupport::kMissing;
    const bool permitted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
    return permitted ? TileSupport::kUsable : TileSupport::kRefused;
  }();
  return support;
}

const TileKernels* BestTileKernels() {
  if (FindTileSupport() == TileSupport::kUsable) return &kAmxTileKernels;
  return UsesAvx512() ? &kAvx512TileKernels : nullptr;
}

}  // namespace tandem::cpu
