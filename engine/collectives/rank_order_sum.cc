#include "engine/collectives/rank_order_sum.h"

#include <algorithm>
#include <type_traits>

#include "engine/tensor/half.h"

namespace tandem {
namespace {

// Elements that are summed at a time: sums stay in the first-level cache.
constexpr int64_t kBlock = 1024;

// T is what memory holds, Sum what is added.
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

}  // namespace

void SumInRankOrder(DType dtype, absl::Span<const void* const> terms, int64_t elements, double factor,
                    absl::Span<void* const> outputs) {
  switch (dtype) {
    case DType::kFloat32:
      return SumBlocks<float, float>(terms, elements, static_cast<float>(factor), outputs);
    case DType::kFloat64:
      return SumBlocks<double, double>(terms, elements, factor, outputs);
    case DType::kBFloat16:
      return SumBlocks<BFloat16, float>(terms, elements, static_cast<float>(factor), outputs);
    case DType::kFloat16:
      return SumBlocks<Float16, float>(terms, elements, static_cast<float>(factor), outputs);
    // Unsigned, as signed numbers must not overflow.
    case DType::kInt32:
      return SumBlocks<uint32_t, uint32_t>(terms, elements, 1, outputs);
    case DType::kInt64:
      return SumBlocks<uint64_t, uint64_t>(terms, elements, 1, outputs);
    case DType::kUInt8:
      return SumBlocks<uint8_t, uint8_t>(terms, elements, 1, outputs);
  }
}

}  // namespace tandem
