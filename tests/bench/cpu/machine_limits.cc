#include "tests/bench/cpu/machine_limits.h"

#include <immintrin.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "engine/backends/cpu/kernels/tiles.h"

namespace tandem {
namespace {

constexpr int kRounds = 8;
constexpr int64_t kRepeats = 1 << 22;
constexpr int64_t kFloats = 16 << 20;  // Of each of three arrays.
// Enough independent sums, so that no product waits for another.
constexpr int kSums = 12;

// Each function returns the operations of `repeats` repetitions. The barriers keep all sums apart.
__attribute__((target("avx2,fma"))) double MultiplyAvx2(int64_t repeats) {
  __m256 sums[kSums] = {};
  const __m256 x = _mm256_set1_ps(1.5f);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = _mm256_fmadd_ps(x, x, sum);
      asm volatile("" : "+x"(sum));
    }
  }
  return static_cast<double>(repeats) * kSums * 16;
}

__attribute__((target("avx512f"))) double MultiplyAvx512(int64_t repeats) {
  __m512 sums[kSums] = {};
  const __m512 x = _mm512_set1_ps(1.5f);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = _mm512_fmadd_ps(x, x, sum);
      asm volatile("" : "+v"(sum));
    }
  }
  return static_cast<double>(repeats) * kSums * 32;
}

constexpr uint16_t kOneAndAHalf = 0x3FC0;  // In bfloat16.

__attribute__((target("avx512f,avx512bf16"))) double MultiplyBFloat16(int64_t repeats) {
  __m512 sums[kSums] = {};
  const __m512bh x = (__m512bh)_mm512_set1_epi16(kOneAndAHalf);
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, x, x);
      asm volatile("" : "+v"(sum));
    }
  }
  return static_cast<double>(repeats) * kSums * 64;
}

__attribute__((target("amx-tile,amx-bf16"))) double MultiplyTiles(int64_t repeats) {
  alignas(64) uint8_t shapes[64] = {1};
  for (int tile = 0; tile < 8; ++tile) {
    shapes[16 + 2 * tile] = 64;  // Bytes of a row.
    shapes[48 + tile] = 16;      // Rows.
  }
  alignas(64) uint16_t factor[16 * 32];
  std::fill(std::begin(factor), std::end(factor), kOneAndAHalf);
  // g++ 12 does not know that the instructions read the whole arrays.
  asm volatile("" : : "r"(shapes), "r"(factor) : "memory");
  _tile_loadconfig(shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, factor, 64);
  _tile_loadd(5, factor, 64);
  _tile_loadd(6, factor, 64);
  _tile_loadd(7, factor, 64);
  for (int64_t i = 0; i < repeats / 16; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return static_cast<double>(repeats / 16) * 4 * 2 * 16 * 16 * 32;
}

// c = a + b. Returns the bytes read and written.
double Add(int64_t count, const float* a, const float* b, float* c) {
  for (int64_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
  asm volatile("" : : "r"(c) : "memory");
  return static_cast<double>(count) * 3 * sizeof(float);
}

// Returns the work a second that `threads` threads do together, in the best of some rounds. Each thread calls
// make(thread) once, and its result in each round. The result returns its work.
template <typename Make>
double BestRate(int threads, const Make& make) {
  using Clock = std::chrono::steady_clock;
  struct Part {
    double work = 0;
    Clock::time_point begin, end;
  };
  std::vector<std::vector<Part>> rounds(kRounds, std::vector<Part>(threads));
  std::barrier together(threads);
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      auto work = make(t);
      for (std::vector<Part>& round : rounds) {
        together.arrive_and_wait();
        round[t].begin = Clock::now();
        round[t].work = work();
        round[t].end = Clock::now();
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  double best = 0;
  for (const std::vector<Part>& round : rounds) {
    Part sum = round[0];
    for (int t = 1; t < threads; ++t) {
      sum.work += round[t].work;
      sum.begin = std::min(sum.begin, round[t].begin);
      sum.end = std::max(sum.end, round[t].end);
    }
    best = std::max(best, sum.work / std::chrono::duration<double>(sum.end - sum.begin).count());
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
  const int64_t count = kFloats / threads;
  return {.flops = BestRate(threads, [&](int) { return [=] { return multiply(kRepeats); }; }),
          .bytes = BestRate(threads, [&](int) {
            return [count, a = std::vector<float>(count, 1), b = std::vector<float>(count, 2),
                    c = std::vector<float>(count)]() mutable {
              return Add(count, a.data(), b.data(), c.data());
            };
          })};
}

}  // namespace tandem
