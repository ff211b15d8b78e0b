#include "engine/backends/cuda/kernels/dropout.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/philox.h"

namespace tandem::cuda {
namespace {

__device__ __forceinline__ RandomWords WordsOf(const DropoutRule& rule, int64_t step, int64_t sample,
                                               int64_t block) {
  const auto whole = static_cast<uint64_t>(step);
  return RandomBlock(rule.seed, rule.purpose, whole & ((uint64_t{1} << rule.step_bits) - 1),
                     static_cast<uint64_t>(rule.first_sample + sample) + (whole >> rule.step_bits),
                     static_cast<uint64_t>(block));
}

// A thread has a block of four words, and the four elements of these words.
template <typename T>
void Run(const DropoutRule& rule, const int64_t* step, const T* x, T* y, Stream stream) {
  const int64_t channels = rule.sizes.channels;
  const int64_t inner = rule.sizes.inner;
  const int64_t elements = channels * inner;  // Of a sample.
  const int64_t blocks = (elements + 3) / 4;
  // Neighbouring threads handle neighbouring channels, if a block stays within a sample.
  const bool by_channel = rule.channels_last && inner % 4 == 0;
  const bool packed = !rule.channels_last && elements % 4 == 0;
  ForEach(rule.sizes.outer * blocks, stream, [=] __device__(int64_t i) {
    const int64_t sample = i / blocks;
    int64_t block = i - sample * blocks;
    if (by_channel) block = block % channels * (inner / 4) + block / channels;
    const RandomWords random = WordsOf(rule, *step, sample, block);
    const int64_t first = sample * elements;
    if (packed) {
      const int64_t pack = (first + 4 * block) / 4;
      const auto items = reinterpret_cast<const Pack<T, 4>*>(x)[pack];
      Pack<T, 4> result;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        result.items[k] =
            To<T>(random.words[k] >= rule.threshold ? ToFloat(items.items[k]) * rule.scale : 0.0f);
      }
      Store(result, reinterpret_cast<Pack<T, 4>*>(y) + pack);
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int64_t e = 4 * block + k;
      if (e >= elements) return;
      const int64_t place = first + (rule.channels_last ? e % inner * channels + e / inner : e);
      y[place] = To<T>(random.words[k] >= rule.threshold ? ToFloat(x[place]) * rule.scale : 0.0f);
    }
  });
}

}  // namespace

void Dropout(const DropoutRule& rule, DType type, const int64_t* step, const void* x, void* y,
             Stream stream) {
  WithNumber(type, [&](auto number) {
    using T = decltype(number);
    Run(rule, step, static_cast<const T*>(x), static_cast<T*>(y), stream);
  });
}

}  // namespace tandem::cuda
