#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_TENSOR_CHANGES_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_TENSOR_CHANGES_H_

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace tandem::cuda {

// A tensor that a launch changes element by element, for example a parameter by its gradient.
struct TensorChange {
  static constexpr int kMostStates = 3;

  float* target = nullptr;
  const void* source = nullptr;
  DType source_type = DType::kFloat32;  // Or bfloat16, or float16.
  float* states[kMostStates] = {};      // They also change.
  int64_t elements = 0;
};

// Returns the size of a block's piece for this total number of elements. It is small for few elements, so
// that the whole device works.
inline constexpr int64_t ChangePieceSize(int64_t elements) { return elements <= 1 << 20 ? 1024 : 8192; }

// The elements of a tensor from index * piece size on.
struct ChangePiece {
  int32_t tensor = 0;
  int32_t index = 0;
};

// The changes of a launch. The arrays are on the device. The pieces of a tensor are consecutive.
struct ChangeTable {
  const TensorChange* tensors = nullptr;
  const ChangePiece* pieces = nullptr;
  int tensor_count = 0;
  int piece_count = 0;
  int64_t piece_size = 0;
  // On the device. May be null. If it is 0, nothing changes.
  const double* apply = nullptr;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_TENSOR_CHANGES_H_
