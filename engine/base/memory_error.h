#ifndef TANDEM_ENGINE_BASE_MEMORY_ERROR_H_
#define TANDEM_ENGINE_BASE_MEMORY_ERROR_H_

#include <new>
#include <stdexcept>

#include "absl/status/status.h"

namespace tandem {

// What `function`, which returns a Status, returns; RESOURCE_EXHAUSTED where the system gives no memory for
// what it does (std::bad_alloc), or nothing may be as large as what it wants (std::length_error), which else
// would end the process.
template <typename Function>
absl::Status CatchNoMemory(const Function& function) {
  const auto no_memory = [] {
    return absl::ResourceExhaustedError(
        "out of memory; use a smaller global_batch_size, network or data set, or fewer replicas on this "
        "machine");
  };
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {
    return no_memory();
  }
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_MEMORY_ERROR_H_
