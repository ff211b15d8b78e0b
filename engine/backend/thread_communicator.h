#ifndef TANDEM_ENGINE_BACKEND_THREAD_COMMUNICATOR_H_
#define TANDEM_ENGINE_BACKEND_THREAD_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "engine/backend/communicator.h"

namespace tandem {

// A group of ranks that are threads of a test: everything under one lock, one element after the other. Entry
// r is the end of rank r.
std::vector<std::unique_ptr<Communicator>> CreateThreadCommunicators(int world_size);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BACKEND_THREAD_COMMUNICATOR_H_
