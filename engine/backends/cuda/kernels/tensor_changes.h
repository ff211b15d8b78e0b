#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_TENSOR_CHANGES_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_TENSOR_CHANGES_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// One of the tensors that a launch changes, element by element: a parameter by its gradient, say.
struct TensorChange {
  static constexpr int kMostStates = 3;

  float* target = nullptr;
  const void* source = nullptr;
  DType source_type = DType::kFloat32;  // Or bfloat16, or float16.
  float* states[kMostStates] = {};      // They change too.
  double* number = nullptr;             // Of the whole tensor.
  int64_t elements = 0;
};

// Blocks work on pieces of so many elements, for so many in all: few where there are few, so that all of the
// device works on them.
inline constexpr int64_t ChangePieceSize(int64_t elements) { return elements <= 1 << 20 ? 1024 : 8192; }

// The elements of a tensor from index * the size of pieces on.
struct ChangePiece {
  int32_t tensor = 0;
  int32_t index = 0;
};

// What a launch changes. The arrays are on the device; pieces of a tensor follow each other.
struct ChangeTable {
  const TensorChange* tensors = nullptr;
  const ChangePiece* pieces = nullptr;
  int tensor_count = 0;
  int piece_count = 0;
  int64_t piece_size = 0;
  // On the device: where it is there and 0, nothing changes.
  const double* apply = nullptr;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_TENSOR_CHANGES_H_
