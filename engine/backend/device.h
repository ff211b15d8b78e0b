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

// The device of a replica. Each replica has its own object. Used by a single thread at a time.
class Device {
 public:
  virtual ~Device() = default;

  // Returns for example "cpu:0".
  virtual const std::string& name() const = 0;
  // Returns the type of computations and parameters: float64 on the reference backend, else float32.
  virtual DType dtype() const = 0;

  // Returns an empty set of variables. With `like`, variables get the layouts of `like`, a set of a device of
  // the same kind. So the two sets can be reduced element by element.
  virtual std::unique_ptr<Variables> CreateVariables(const Variables* like = nullptr) = 0;

  // Makes `graph` runnable over `variables`. Adds the graph's variables that are missing in `variables`,
  // which must outlive the result. Chooses algorithms, layouts and memory. UNIMPLEMENTED, with the op's kind,
  // if the backend does not offer an op. INVALID_ARGUMENT if a variable exists with another type or shape.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, Variables* variables) = 0;

  // Returns when all work of this device's executables has ended, with its error. Returns at once on a device
  // whose executables return only after their work.
  virtual absl::Status Wait() { return absl::OkStatus(); }

  // Returns a communicator for memory of this device, on top of `host`, a communicator for host memory.
  // `host` must outlive the result. Returns null if the device's memory is the host's.
  virtual std::unique_ptr<Communicator> WrapCommunicator(Communicator* /*host*/) { return nullptr; }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_DEVICE_H_
