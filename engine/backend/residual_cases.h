#ifndef TANDEM_ENGINE_BACKEND_RESIDUAL_CASES_H_
#define TANDEM_ENGINE_BACKEND_RESIDUAL_CASES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/backend/device.h"
#include "engine/backend/op_cases.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// A residual network with its gradients. Backends fuse a normalisation with the ops after it, forward and
// backward, and the fusion depends on the ops around it.
struct ResidualSettings {
  int64_t batch = 4;
  int64_t channels = 16;
  bool training = true;
  bool relu_between = true;        // Whether a ReLU is between the two convolutions of a block.
  bool shortcut_has_norm = false;  // True in deeper ResNets.
  int draw = 0;                    // Selects the samples.
};

// Returns the network. Its outputs are the gradients of all parameters.
CaseGraph ResidualNetwork(const ResidualSettings& settings, DType dtype);

// A device to test. `narrow` says whether it computes in bfloat16.
struct ResidualDevice {
  Device* device = nullptr;
  bool narrow = false;
};
// Fails the test if a device disagrees with `reference` for any settings.
void ExpectResidualNetworksAgree(Device& reference, absl::Span<const ResidualDevice> devices);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_RESIDUAL_CASES_H_
