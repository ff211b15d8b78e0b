#ifndef TANDEM_ENGINE_DATA_PARALLEL_H_
#define TANDEM_ENGINE_DATA_PARALLEL_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// Calls work(i) for i in [0, count) on as many threads as the machine has cores, or as the system allows.
// Returns the status of each call. After the first failure, work may not be called for further i, and their
// status is OK. RESOURCE_EXHAUSTED for a call without memory.
std::vector<absl::Status> RunInParallel(size_t count, const std::function<absl::Status(size_t)>& work);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_PARALLEL_H_
