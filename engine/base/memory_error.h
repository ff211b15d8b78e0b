#ifndef TANDEM_ENGINE_BASE_MEMORY_ERROR_H_
#define TANDEM_ENGINE_BASE_MEMORY_ERROR_H_

#include <new>
#include <stdexcept>

#include "absl/status/status.h"

namespace tandem {

// Calls `function`, which returns a Status, and returns its result. RESOURCE_EXHAUSTED if the function throws
// std::bad_alloc (no memory) or std::length_error (a size above the largest). Without this call both would
// end the process.
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
