#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANGE_KERNEL_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANGE_KERNEL_H_

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"
#include "engine/backends/cuda/kernels/tensor_changes.h"

namespace tandem::cuda {

// The elements of a piece: [begin, end).
struct PieceRange {
  __device__ PieceRange(const ChangeTable& table, const TensorChange& tensor, const ChangePiece& piece)
      : begin(piece.index * table.piece_size),
        end(begin + table.piece_size < tensor.elements ? begin + table.piece_size : tensor.elements) {}
  int64_t begin;
  int64_t end;
};

template <typename X, typename Rule>
__device__ __forceinline__ void ChangePieceBy(const typename Rule::Numbers numbers,
                                              const TensorChange& tensor, PieceRange range) {
  constexpr int kCount = 4;
  constexpr int kStates = Rule::kStates;
  constexpr int kWritten = Rule::kChangesStates ? kStates : 0;
  using Items = Pack<float, kCount>;
  const X* source = static_cast<const X*>(tensor.source);
  // In registers, like the numbers: the compiler must assume that a write changes the table.
  float* const target = tensor.target;
  float* at[kStates + 1];
#pragma unroll
  for (int s = 0; s < kStates; ++s) at[s] = tensor.states[s];
  const int64_t packs_end = range.begin + (range.end - range.begin) / kCount * kCount;
  for (int64_t i = range.begin + threadIdx.x * kCount; i < packs_end; i += blockDim.x * kCount) {
    Items y = *reinterpret_cast<const Items*>(target + i);
    const Pack<X, kCount> x = *reinterpret_cast<const Pack<X, kCount>*>(source + i);
    Items states[kStates + 1];
#pragma unroll
    for (int s = 0; s < kStates; ++s) states[s] = *reinterpret_cast<const Items*>(at[s] + i);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      float own[kStates + 1];
#pragma unroll
      for (int s = 0; s < kStates; ++s) own[s] = states[s].items[j];
      Rule::Change(numbers, y.items[j], ToFloat(x.items[j]), own);
#pragma unroll
      for (int s = 0; s < kStates; ++s) states[s].items[j] = own[s];
    }
    Store(y, reinterpret_cast<Items*>(target + i));
#pragma unroll
    for (int s = 0; s < kWritten; ++s) Store(states[s], reinterpret_cast<Items*>(at[s] + i));
  }
  const int64_t rest = packs_end + threadIdx.x;
  if (rest >= range.end) return;
  float own[kStates + 1];
#pragma unroll
  for (int s = 0; s < kStates; ++s) own[s] = at[s][rest];
  Rule::Change(numbers, target[rest], ToFloat(source[rest]), own);
#pragma unroll
  for (int s = 0; s < kWritten; ++s) at[s][rest] = own[s];
}

// Returns whether a launch may change anything.
__device__ __forceinline__ bool Applies(const double* apply) { return apply == nullptr || *apply != 0; }

// Calls `function(X())` with the type of the tensor's source.
template <typename Function>
__device__ __forceinline__ void WithSource(const TensorChange& tensor, const Function& function) {
  switch (tensor.source_type) {
    case DType::kBFloat16:
      return function(Bf16());
    case DType::kFloat16:
      return function(Half());
    default:
      return function(float());
  }
}

// Rule defines the change. kStates is its number of states, and kChangesStates says whether it writes them.
// Numbers is a plain type that `At(int tensor)` creates once for each block. The static Change(numbers,
// float& target, float source, float* states) computes an element.
template <typename Rule>
TANDEM_KERNEL ChangeKernel(Rule rule, ChangeTable table) {
  if (!Applies(table.apply)) return;
  __shared__ typename Rule::Numbers numbers;
  const ChangePiece piece = table.pieces[blockIdx.x];
  const TensorChange& tensor = table.tensors[piece.tensor];
  if (threadIdx.x == 0) numbers = rule.At(piece.tensor);
  __syncthreads();
  const typename Rule::Numbers own = numbers;
  WithSource(tensor, [&](auto number) {
    ChangePieceBy<decltype(number), Rule>(own, tensor, PieceRange(table, tensor, piece));
  });
}

template <typename Rule>
void Change(const Rule& rule, const ChangeTable& table, Stream stream) {
  InParts(table.piece_count, MostBlocks(), [&](unsigned first, unsigned count) {
    ChangeTable part = table;
    part.pieces += first;
    Launch(ChangeKernel<Rule>, {count}, Threads(), stream, rule, part);
  });
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_CHANGE_KERNEL_H_
