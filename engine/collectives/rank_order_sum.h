#ifndef TANDEM_ENGINE_COLLECTIVES_RANK_ORDER_SUM_H_
#define TANDEM_ENGINE_COLLECTIVES_RANK_ORDER_SUM_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// Writes (terms[0] + terms[1] + ...) * factor to each of `outputs`. All have `elements` elements of the same
// type. The terms are added in this order, so every rank gets the same bits. 16-bit types are added in
// float32 and rounded once. `factor` is 1 for integers, whose sums wrap around. An output may be one of the
// terms.
void SumInRankOrder(DType dtype, absl::Span<const void* const> terms, int64_t elements, double factor,
                    absl::Span<void* const> outputs);

}  // namespace tandem

#endif  // TANDEM_ENGINE_COLLECTIVES_RANK_ORDER_SUM_H_
