#ifndef TANDEM_ENGINE_BACKENDS_CPU_TRANSFER_H_
#define TANDEM_ENGINE_BACKENDS_CPU_TRANSFER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backends/cpu/layout.h"
#include "engine/tensor/tensor.h"

namespace tandem::cpu {

// Convert between a host tensor and memory of any layout, with the same type and shape. INTERNAL if oneDNN
// fails.
absl::StatusOr<Tensor> ToTensor(const Layout& layout, const void* data);
absl::Status FromTensor(const Tensor& tensor, const Layout& layout, void* data);

}  // namespace tandem::cpu

#endif  // TANDEM_ENGINE_BACKENDS_CPU_TRANSFER_H_
