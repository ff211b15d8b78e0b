#ifndef TANDEM_ENGINE_BACKEND_EXECUTABLE_H_
#define TANDEM_ENGINE_BACKEND_EXECUTABLE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/backend/communicator.h"
#include "engine/tensor/tensor.h"

namespace tandem {

// A compiled graph. Used by a single thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  // Computes the graph. `inputs[i]` points to the elements of the graph's i-th input, dense and row-major in
  // host memory. The inputs must not change until Run returns. `communicator` serves the all_reduce ops. It
  // may be null for a single replica or a graph without them. Returns the error of a failed reduction.
  virtual absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) = 0;

  // Returns the inputs of run `run`, as for Run. They must not change until the next call.
  using InputsOfRun = absl::FunctionRef<absl::Span<const void* const>(int64_t run)>;

  // Computes the graph `runs` times, one run after the other. Calls `inputs_of` for each run, in order. A
  // device may take several runs together, which costs less time.
  virtual absl::Status RunSeveral(int64_t runs, InputsOfRun inputs_of, Communicator* communicator) {
    for (int64_t run = 0; run < runs; ++run) {
      if (absl::Status status = Run(inputs_of(run), communicator); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Returns the graph's i-th output of the newest run, row-major. FAILED_PRECONDITION before the first run.
  virtual absl::StatusOr<Tensor> Output(int i) const = 0;

  // Returns a sentence for people if runs are slower than the device can be, with the reason: a GPU does not
  // take whole runs at once, or Linux refuses AMX. Otherwise empty. Known after the second run.
  virtual std::string notice() const { return ""; }

  // Returns the bytes of the arena and of workspaces, without variables.
  virtual int64_t bytes() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_EXECUTABLE_H_
