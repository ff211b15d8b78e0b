#ifndef TANDEM_ENGINE_BASE_MEMORY_ERROR_H_
#define TANDEM_ENGINE_BASE_MEMORY_ERROR_H_

#include <new>

#include "absl/status/status.h"

namespace tandem {

// What `function`, which returns a Status, returns; RESOURCE_EXHAUSTED where the system gives no memory for
// what it does (std::bad_alloc), which else would end the process.
template <typename Function>
absl::Status CatchNoMemory(const Function& function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory; use a smaller global_batch_size, network or data set, or fewer replicas on this "
        "machine");
  }
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_MEMORY_ERROR_H_
