#ifndef TANDEM_ENGINE_BACKEND_RESIDUAL_CASES_H_
#define TANDEM_ENGINE_BACKEND_RESIDUAL_CASES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/backend/device.h"
#include "engine/backend/op_cases.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// A residual network with its gradients: backends do what follows a normalisation along with it, forward and
// backward, in ways that depend on what is around it.
struct ResidualSettings {
  int64_t batch = 4;
  int64_t channels = 16;
  bool training = true;
  bool relu_between = true;        // Between the two convolutions of a block.
  bool shortcut_has_norm = false;  // As in deeper ResNets.
  int draw = 0;                    // Which samples.
};

// The network; its outputs are the gradients of all parameters.
CaseGraph ResidualNetwork(const ResidualSettings& settings, DType dtype);

// A device, and whether it computes in bfloat16.
struct ResidualDevice {
  Device* device = nullptr;
  bool narrow = false;
};
// Fails the test where one of the devices computes something else than `reference`, for any settings.
void ExpectResidualNetworksAgree(Device& reference, absl::Span<const ResidualDevice> devices);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_RESIDUAL_CASES_H_
