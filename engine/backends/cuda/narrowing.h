#ifndef TANDEM_ENGINE_BACKENDS_CUDA_NARROWING_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_NARROWING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "engine/backends/cuda/device_table.h"
#include "engine/backends/cuda/kernels/convert.h"
#include "engine/backends/cuda/lowering.h"

namespace tandem::cuda {

// Float32 tensors, such as parameters, that a single launch converts to a narrow type, element by element.
// The functions of a step share it.
class Narrowing {
 public:
  explicit Narrowing(DType type) : type_(type) {}
  void Add(Region source, Region target, int64_t elements) { tensors_.push_back({source, target, elements}); }
  absl::Status Bind(const RunContext& run);
  void Run(Stream stream) const { NarrowTensors(table_, type_, stream); }

 private:
  struct Tensor {
    Region source;
    Region target;
    int64_t elements = 0;
  };
  const DType type_;
  std::vector<Tensor> tensors_;
  std::unique_ptr<DeviceTable<NarrowedTensor>> tensor_table_;
  std::unique_ptr<DeviceTable<ChangePiece>> piece_table_;
  NarrowTable table_;
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_NARROWING_H_
