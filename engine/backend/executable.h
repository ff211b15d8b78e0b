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

// A compiled graph. Used by one thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;

  // Computes the graph once. `inputs[i]` points to the elements of the graph's i-th input, dense and
  // row-major, in host memory that stays as it is until Run returns. `communicator` serves the graph's
  // all_reduce ops; it may be null where there are none, or where there is one replica. Errors: a failed
  // reduction's.
  virtual absl::Status Run(absl::Span<const void* const> inputs, Communicator* communicator) = 0;

  // Gives the inputs of one of several runs, as Run takes them; they stay as they are until it is called
  // again.
  using InputsOfRun = absl::FunctionRef<absl::Span<const void* const>(int64_t run)>;

  // Computes the graph `runs` times, one after the other. `inputs_of` is called once for each, in their
  // order; a device may be given several at a time, which takes it less than one by one.
  virtual absl::Status RunSeveral(int64_t runs, InputsOfRun inputs_of, Communicator* communicator) {
    for (int64_t run = 0; run < runs; ++run) {
      if (absl::Status status = Run(inputs_of(run), communicator); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // The graph's i-th output of the newest run, row-major. FAILED_PRECONDITION before the first.
  virtual absl::StatusOr<Tensor> Output(int i) const = 0;

  // What a person should know of how runs are done, in a sentence: that the device cannot be given them as
  // wholes, and why. Empty where there is nothing to say; known after the second run.
  virtual std::string notice() const { return ""; }

  // Bytes of the arena and of workspaces; variables not counted.
  virtual int64_t bytes() const = 0;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_EXECUTABLE_H_
