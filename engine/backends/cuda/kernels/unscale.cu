#include "engine/backends/cuda/kernels/unscale.h"

#include <cfloat>

#include "engine/backends/cuda/kernels/change_kernel.h"
#include "engine/backends/cuda/kernels/reduce.h"

namespace tandem::cuda {
namespace {

// Returns how many of the thread's results are not finite.
template <typename X>
__device__ int UnscalePiece(const TensorChange& tensor, PieceRange range, float factor) {
  constexpr int kCount = 4;
  const X* source = static_cast<const X*>(tensor.source);
  float* const target = tensor.target;
  int bad = 0;
  const auto unscale = [&](X x) {
    const float y = factor * ToFloat(x);
    bad += fabsf(y) <= FLT_MAX ? 0 : 1;  // False also for NaN.
    return y;
  };
  const int64_t packs_end = range.begin + (range.end - range.begin) / kCount * kCount;
  for (int64_t i = range.begin + threadIdx.x * kCount; i < packs_end; i += blockDim.x * kCount) {
    const Pack<X, kCount> x = *reinterpret_cast<const Pack<X, kCount>*>(source + i);
    Pack<float, kCount> y;
#pragma unroll
    for (int j = 0; j < kCount; ++j) y.items[j] = unscale(x.items[j]);
    Store(y, reinterpret_cast<Pack<float, kCount>*>(target + i));
  }
  const int64_t rest = packs_end + threadIdx.x;
  if (rest < range.end) target[rest] = unscale(source[rest]);
  return bad;
}

// A block unscales a piece, and counts its non-finite results.
TANDEM_KERNEL UnscaleKernel(ChangeTable table, const float* scale, int* bad_of_pieces) {
  const ChangePiece piece = table.pieces[blockIdx.x];
  const TensorChange& tensor = table.tensors[piece.tensor];
  const PieceRange range(table, tensor, piece);
  const float factor = 1 / *scale;
  int bad = 0;
  WithSource(tensor, [&](auto number) { bad = UnscalePiece<decltype(number)>(tensor, range, factor); });
  bad = ReduceBlock(bad, 0, Sum());
  if (threadIdx.x == 0) bad_of_pieces[blockIdx.x] = bad;
}

TANDEM_KERNEL LossScaleKernel(int pieces, const int* bad_of_pieces, LossScaleRule rule,
                              LossScaleState state) {
  int bad = 0;
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) bad += bad_of_pieces[i] != 0 ? 1 : 0;
  bad = ReduceBlock(bad, 0, Sum());
  if (threadIdx.x != 0) return;
  *state.apply = bad == 0 ? 1 : 0;
  *state.taken = *state.step - static_cast<int64_t>(*state.skipped + 0.5);
  const double scale = *state.scale;
  if (bad != 0) {
    *state.good = 0;
    *state.skipped += 1;
    *state.meter += 1;
    const double less = scale * rule.backoff_factor;
    const double bound = less > rule.least ? less : rule.least;
    *state.scale = static_cast<float>(scale < bound ? scale : bound);
    return;
  }
  *state.good += 1;
  if (*state.good < static_cast<double>(rule.growth_interval)) return;
  *state.good = 0;
  const double more = scale * rule.growth_factor;
  const double bound = more < rule.most ? more : rule.most;
  *state.scale = static_cast<float>(scale > bound ? scale : bound);
}

}  // namespace

void UnscaleTensors(const ChangeTable& table, const LossScaleRule& rule, const LossScaleState& state,
                    void* scratch, Stream stream) {
  auto* bad = static_cast<int*>(scratch);
  InParts(table.piece_count, MostBlocks(), [&](unsigned first, unsigned count) {
    ChangeTable part = table;
    part.pieces += first;
    Launch(UnscaleKernel, {count}, Threads(), stream, part, state.scale, bad + first);
  });
  Launch(LossScaleKernel, {1}, Threads(), stream, table.piece_count, bad, rule, state);
}

}  // namespace tandem::cuda
