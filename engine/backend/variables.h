#ifndef TANDEM_ENGINE_BACKEND_VARIABLES_H_
#define TANDEM_ENGINE_BACKEND_VARIABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/communicator.h"
#include "engine/graph/graph.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// The state of a replica on its device, by name: parameters, optimizer state, statistics and meters. All
// executables of the replica share it. Not thread-safe.
class Variables {
 public:
  virtual ~Variables() = default;

  // Returns the names in the order of declaration.
  virtual std::vector<std::string> names() const = 0;
  // NOT_FOUND if there is no variable of this name.
  virtual absl::StatusOr<VariableKind> kind(absl::string_view name) const = 0;

  // Returns the value in row-major order, in the variable's type. NOT_FOUND if there is no variable of this
  // name.
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) const = 0;
  // Replaces the value, and casts `value` to the variable's type. NOT_FOUND if there is no variable of this
  // name, INVALID_ARGUMENT if the shape differs.
  virtual absl::Status Write(absl::string_view name, const Tensor& value) = 0;
  // Sets the variable to zero. NOT_FOUND if there is no variable of this name.
  virtual absl::Status Clear(absl::string_view name) = 0;

  // Returns the variable's memory in the device's own layout. Use it to reduce sets with equal layouts.
  virtual absl::StatusOr<BufferView> View(absl::string_view name) = 0;

  // Returns the bytes on the device, with padding.
  virtual int64_t bytes() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_VARIABLES_H_
