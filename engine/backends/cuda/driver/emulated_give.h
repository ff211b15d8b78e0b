#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_GIVE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_GIVE_H_

#include <functional>

#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// Gives a stream of the emulation work, which it does or records: see emulated_stream.h. A stream that is
// null does it at once.
void Give(Stream stream, std::function<void()> work);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_GIVE_H_
