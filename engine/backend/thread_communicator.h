#ifndef TANDEM_ENGINE_BACKEND_THREAD_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKEND_THREAD_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "engine/backend/communicator.h"

namespace tandem {

// Returns a group of ranks for the threads of a test. It works under a single lock, element by element. Entry
// r is the end of rank r.
std::vector<std::unique_ptr<Communicator>> CreateThreadCommunicators(int world_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_THREAD_COMMUNICATOR_H_
