#ifndef TANDEM_ENGINE_DATA_PARALLEL_H_
#define TANDEM_ENGINE_DATA_PARALLEL_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"

namespace tandem {

// Calls work(i) for i in [0, count), on as many threads as the machine has cores, or as can be had. Returns
// each one's status; those behind the first failure in the order of time may not have been called, and are
// then OK. RESOURCE_EXHAUSTED where one has no memory.
std::vector<absl::Status> RunInParallel(size_t count, const std::function<absl::Status(size_t)>& work);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_PARALLEL_H_
