#ifndef TANDEM_ENGINE_INITIALIZERS_INITIALIZER_H_
#define TANDEM_ENGINE_INITIALIZERS_INITIALIZER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/tensor/tensor.h"
#include "tandem/v1/model.pb.h"

namespace tandem {

// The inputs and outputs of a unit. For a convolution, `in` is input channels / groups x window. `out` is
// filters x window for any number of groups, as in PyTorch.
struct Fans {
  double in = 1;
  double out = 1;
};

// Returns a separate seed for each name, from the job's seed.
uint64_t SeedOf(uint64_t seed, absl::string_view name);

// Sets missing fields to their defaults. A message without a kind stays.
void FillInitializerDefaults(v1::Initializer* initializer);

// INVALID_ARGUMENT with the wrong fields, relative to the Initializer ("uniform.high").
absl::Status CheckInitializer(const v1::Initializer& initializer);

// Returns the number of products that an orthogonal initial value of `shape` takes.
double OrthogonalProducts(const Shape& shape);

// Returns the initial value of the parameter `name`, float32. It depends on the arguments alone.
// `initializer` has a kind and its defaults, and was checked.
Tensor Initialize(const v1::Initializer& initializer, const Shape& shape, Fans fans, uint64_t seed,
                  absl::string_view name);

}  // namespace tandem

#endif  // TANDEM_ENGINE_INITIALIZERS_INITIALIZER_H_
