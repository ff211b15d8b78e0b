#include "engine/collectives/rank_order_sum.h"

#include <algorithm>
#include <type_traits>

#include "engine/tensor/half.h"

namespace tandem {
namespace {

// The number of elements that are added at a time, so that sums stay in the first-level cache.
constexpr int64_t kBlock = 1024;

// T is the type in memory, Sum the type of the addition.
template <typename T, typename Sum>
void SumBlocks(absl::Span<const void* const> terms, int64_t elements, Sum factor,
               absl::Span<void* const> outputs) {
  Sum sum[kBlock];
  T rounded[kBlock];
  for (int64_t at = 0; at < elements; at += kBlock) {
    const int64_t count = std::min(kBlock, elements - at);
    const T* const first = static_cast<const T*>(terms[0]) + at;
    for (int64_t i = 0; i < count; ++i) sum[i] = static_cast<Sum>(first[i]);
    for (const void* const term : terms.subspan(1)) {
      const T* const other = static_cast<const T*>(term) + at;
      for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<Sum>(other[i]);
    }
    if (factor != Sum{1}) {
      for (int64_t i = 0; i < count; ++i) sum[i] *= factor;
    }
    const T* result;
    if constexpr (std::is_same_v<T, Sum>) {
      result = sum;
    } else {
      for (int64_t i = 0; i < count; ++i) rounded[i] = static_cast<T>(sum[i]);
      result = rounded;
    }
    for (void* const output : outputs) std::copy_n(result, count, static_cast<T*>(output) + at);
  }
}

// The case of two terms and two outputs, as for two replicas: a single pass with sums in registers. Reads
// small groups of elements before it writes them, because an output may be a term.
template <typename T, typename Sum>
void SumPairs(const T* a, const T* b, int64_t elements, Sum factor, T* x, T* y) {
  constexpr int64_t kGroup = 8;
  const auto sum_of = [=](int64_t i) {
    return static_cast<T>((static_cast<Sum>(a[i]) + static_cast<Sum>(b[i])) * factor);
  };
  int64_t at = 0;
  for (; at + kGroup <= elements; at += kGroup) {
    T group[kGroup];
    for (int64_t i = 0; i < kGroup; ++i) group[i] = sum_of(at + i);
    for (int64_t i = 0; i < kGroup; ++i) x[at + i] = group[i];
    for (int64_t i = 0; i < kGroup; ++i) y[at + i] = group[i];
  }
  for (; at < elements; ++at) x[at] = y[at] = sum_of(at);
}

template <typename T, typename Sum>
void SumTerms(absl::Span<const void* const> terms, int64_t elements, Sum factor,
              absl::Span<void* const> outputs) {
  if (terms.size() != 2 || outputs.size() != 2) return SumBlocks<T, Sum>(terms, elements, factor, outputs);
  SumPairs<T, Sum>(static_cast<const T*>(terms[0]), static_cast<const T*>(terms[1]), elements, factor,
                   static_cast<T*>(outputs[0]), static_cast<T*>(outputs[1]));
}

}  // namespace

void SumInRankOrder(DType dtype, absl::Span<const void* const> terms, int64_t elements, double factor,
                    absl::Span<void* const> outputs) {
  switch (dtype) {
    case DType::kFloat32:
      return SumTerms<float, float>(terms, elements, static_cast<float>(factor), outputs);
    case DType::kFloat64:
      return SumTerms<double, double>(terms, elements, factor, outputs);
    case DType::kBFloat16:
      return SumTerms<BFloat16, float>(terms, elements, static_cast<float>(factor), outputs);
    case DType::kFloat16:
      return SumTerms<Float16, float>(terms, elements, static_cast<float>(factor), outputs);
    // Unsigned, because signed numbers must not overflow.
    case DType::kInt32:
      return SumTerms<uint32_t, uint32_t>(terms, elements, 1, outputs);
    case DType::kInt64:
      return SumTerms<uint64_t, uint64_t>(terms, elements, 1, outputs);
    case DType::kUInt8:
      return SumTerms<uint8_t, uint8_t>(terms, elements, 1, outputs);
  }
}

}  // namespace tandem
