#ifndef TANDEM_ENGINE_BACKEND_DEVICE_H_
#define TANDEM_ENGINE_BACKEND_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/backend/communicator.h"
#include "engine/backend/executable.h"
#include "engine/backend/variables.h"
#include "engine/graph/graph.h"
#include "engine/tensor/dtype.h"

namespace tandem {

// What a replica computes on. One object a replica; used by one thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  // "cpu:0".
  virtual const std::string& name() const = 0;
  // The type in which it computes and keeps parameters: float64 on the reference backend, else float32.
  virtual DType dtype() const = 0;

  // An empty set of variables. With `like`, variables take the layouts that those of `like`, a set of a
  // device of the same kind, have or will have, so that the two can be reduced element by element.
  virtual std::unique_ptr<Variables> CreateVariables(const Variables* like = nullptr) = 0;

  // Makes `graph` runnable over `variables`, which must outlive the result and gets those of the graph's
  // variables that it does not have yet. Algorithms, layouts and memory are settled here. UNIMPLEMENTED, with
  // the op's kind, for an op that the backend does not offer; INVALID_ARGUMENT where a variable is there with
  // another type or shape.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) = 0;

  // Returns when all that its executables were given is done: at once where they return no earlier. Errors of
  // that, which others would see later.
  virtual absl::Status Wait() { return absl::OkStatus(); }

  // A communicator for memory of this device, on top of one for the host's memory, which must outlive it.
  // Null where the device's memory is the host's.
  virtual std::unique_ptr<Communicator> WrapCommunicator(Communicator* /*host*/) { return nullptr; }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DEVICE_H_
