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

// What a replica keeps on its device from run to run: parameters, optimizer state, statistics and meters, by
// name. Shared by all executables of a replica. Not thread-safe.
class Variables {
 public:
  virtual ~Variables() = default;

  // Names in the order in which they were declared.
  virtual std::vector<std::string> names() const = 0;
  // NOT_FOUND where there is none of the name.
  virtual absl::StatusOr<VariableKind> kind(absl::string_view name) const = 0;

  // The value in row-major order, in the variable's type. NOT_FOUND where there is none of the name.
  virtual absl::StatusOr<Tensor> Read(absl::string_view name) const = 0;
  // Replaces the value; `value` is cast to the variable's type. NOT_FOUND where there is none of the name,
  // INVALID_ARGUMENT where the shape differs.
  virtual absl::Status Write(absl::string_view name, const Tensor& value) = 0;
  // Sets it to zero.
  virtual absl::Status Clear(absl::string_view name) = 0;

  // The variable's memory on the device, in the device's own layout: for reductions between sets of like
  // layouts.
  virtual absl::StatusOr<BufferView> View(absl::string_view name) = 0;

  // Bytes on the device, padding included.
  virtual int64_t bytes() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_VARIABLES_H_
