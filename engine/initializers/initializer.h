#ifndef TANDEM_ENGINE_INITIALIZERS_INITIALIZER_H_
#define TANDEM_ENGINE_INITIALIZERS_INITIALIZER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/tensor.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// A unit's inputs and outputs. For a convolution in is input channels / groups x window, and out is filters x
// window whatever the groups are, as in PyTorch.
struct Fans {
  double in = 1;
  double out = 1;
};

// A seed of its own for each name, from the job's.
uint64_t SeedOf(uint64_t seed, absl::string_view name);

// Sets the fields that have a default and are left out. A message without a kind stays so.
void FillInitializerDefaults(v1::Initializer* initializer);

// INVALID_ARGUMENT with the fields at fault, relative to the Initializer ("uniform.high").
absl::Status CheckInitializer(const v1::Initializer& initializer);

// The initial value of the parameter `name`, float32: it follows from the arguments alone. `initializer` has
// its defaults, a kind, and was checked.
Tensor Initialize(const v1::Initializer& initializer, const Shape& shape, Fans fans, uint64_t seed,
                  absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_ENGINE_INITIALIZERS_INITIALIZER_H_
