#include "tests/bench/cpu/machine_limits.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "engine/backends/cpu/kernels/tiles.h"

namespace tandem {
namespace {

constexpr int kRounds = 8;
constexpr int64_t kRepeats = 1 << 22;
constexpr int64_t kFloats = 16 << 20;  // Far beyond the caches.

// Independent sums, so that no product waits for another.
constexpr int kSums = 12;

// Each function returns the operations of `repeats` repetitions.
__attribute__((target("avx2,fma"))) double MultiplyAvx2(int64_t repeats) {
  __m256 sums[kSums] = {};
  __m256 x = _mm256_set1_ps(1e-9f);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm256_fmadd_ps(x, x, sum);
    asm volatile("" : "+x"(x));
  }
#pragma GCC unroll 12
  for (auto& sum : sums) asm volatile("" ::"x"(sum));
  return static_cast<double>(repeats) * kSums * 16;
}

__attribute__((target("avx512f"))) double MultiplyAvx512(int64_t repeats) {
  __m512 sums[kSums] = {};
  __m512 x = _mm512_set1_ps(1e-9f);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_fmadd_ps(x, x, sum);
    asm volatile("" : "+v"(x));
  }
#pragma GCC unroll 12
  for (auto& sum : sums) asm volatile("" ::"v"(sum));
  return static_cast<double>(repeats) * kSums * 32;
}

__attribute__((target("avx512f,avx512bf16"))) double MultiplyBFloat16(int64_t repeats) {
  __m512 sums[kSums] = {};
  __m512 x = _mm512_set1_ps(1e-9f);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)x);
    asm volatile("" : "+v"(x));
  }
#pragma GCC unroll 12
  for (auto& sum : sums) asm volatile("" ::"v"(sum));
  return static_cast<double>(repeats) * kSums * 64;
}

__attribute__((target("amx-tile,amx-bf16"))) double MultiplyTiles(int64_t repeats) {
  alignas(64) uint8_t shapes[64] = {1};
  for (int tile = 0; tile < 8; ++tile) {
    shapes[16 + 2 * tile] = 64;  // Bytes of a row.
    shapes[48 + tile] = 16;      // Rows.
  }
  _tile_loadconfig(shapes);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t i = 0; i < repeats / 16; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return static_cast<double>(repeats / 16) * 4 * 2 * 16 * 16 * 32;
}

// Returns the work a second that `threads` threads do together, in the best of some rounds. work(thread)
// returns its work.
double BestRate(int threads, const std::function<double(int)>& work) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> done(threads);
    std::vector<std::thread> team;
    const auto start = std::chrono::steady_clock::now();
    for (int t = 0; t < threads; ++t) team.emplace_back([&, t] { done[t] = work(t); });
    for (std::thread& thread : team) thread.join();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    double sum = 0;
    for (const double part : done) sum += part;
    best = std::max(best, sum / seconds.count());
  }
  return best;
}

double (*MultiplierOf(DType dtype))(int64_t) {
  const auto* tiles = dtype == DType::kBFloat16 ? cpu::BestTileKernels() : nullptr;
  if (tiles != nullptr) return std::string(tiles->isa) == "amx" ? MultiplyTiles : MultiplyBFloat16;
  return __builtin_cpu_supports("avx512f") ? MultiplyAvx512 : MultiplyAvx2;
}

}  // namespace

MachineLimits MeasureLimits(DType dtype, int threads) {
  const auto multiply = MultiplierOf(dtype);
  std::vector<float> a(kFloats, 1), b(kFloats, 2), c(kFloats);
  const int64_t part = kFloats / threads;
  return {.flops = BestRate(threads, [&](int) { return multiply(kRepeats); }),
          .bytes = BestRate(threads, [&](int t) {
            for (int64_t i = t * part; i < (t + 1) * part; ++i) c[i] = a[i] + b[i];
            asm volatile("" ::"r"(c.data()) : "memory");
            return static_cast<double>(part) * 3 * sizeof(float);
          })};
}

}  // namespace tandem
