#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_OPTIMIZERS_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_OPTIMIZERS_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"
#include "engine/backends/cuda/kernels/tensor_changes.h"
#include "engine/graph/ops/nadam_factors.h"

namespace tandem::cuda {

// A step of an optimizer for all tensors of a table. Targets are parameters, sources gradients.
// engine/graph/ops defines the numbers.
struct SgdUpdate {
  double momentum = 0;  // A state unless it is 0.
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool operator==(const SgdUpdate&) const = default;
};
struct AdamUpdate {  // Two states, three with amsgrad.
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  bool decoupled = false;
  bool amsgrad = false;
  bool operator==(const AdamUpdate&) const = default;
};
struct NadamUpdate {  // Two states.
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  bool decoupled = false;
  double momentum_decay = 0;
  bool operator==(const NadamUpdate&) const = default;
};
struct AdamaxUpdate {  // Two states.
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  bool operator==(const AdamaxUpdate&) const = default;
};
struct LambUpdate {  // Two states.
  double beta1 = 0;
  double beta2 = 0;
  double epsilon = 0;
  double weight_decay = 0;
  bool operator==(const LambUpdate&) const = default;
};
struct AdagradUpdate {  // A single state.
  double lr_decay = 0;
  double epsilon = 0;
  double weight_decay = 0;
  double initial_accumulator = 0;
  bool operator==(const AdagradUpdate&) const = default;
};
struct AdadeltaUpdate {  // Two states.
  double rho = 0;
  double epsilon = 0;
  double weight_decay = 0;
  bool operator==(const AdadeltaUpdate&) const = default;
};
struct RmspropUpdate {  // States: the mean of squares, the mean if centered, the buffer with momentum.
  double alpha = 0;
  double epsilon = 0;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool operator==(const RmspropUpdate&) const = default;
};
struct LionUpdate {  // A single state.
  double beta1 = 0;
  double beta2 = 0;
  double weight_decay = 0;
  bool operator==(const LionUpdate&) const = default;
};

// Pointers to device memory.
struct UpdateTime {
  const double* rate = nullptr;
  const int64_t* step = nullptr;
};

// `scratch` is memory of UpdateScratchBytes.
void RunUpdate(const SgdUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const AdamUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const NadamUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const AdamaxUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const LambUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const AdagradUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const AdadeltaUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const RmspropUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);
void RunUpdate(const LionUpdate& update, const ChangeTable& table, UpdateTime time, void* scratch,
               Stream stream);

// Returns the bytes for a table with this number of tensors and pieces.
template <typename Update>
int64_t UpdateScratchBytes(const Update&, int64_t, int64_t) {
  return 0;
}
inline int64_t UpdateScratchBytes(const NadamUpdate&, int64_t, int64_t) { return sizeof(NadamFactors); }
inline int64_t UpdateScratchBytes(const LambUpdate&, int64_t tensors, int64_t pieces) {
  return (tensors + 2 * pieces) * static_cast<int64_t>(sizeof(double));
}

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_OPTIMIZERS_H_
