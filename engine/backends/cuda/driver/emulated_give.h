#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_GIVE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_GIVE_H_

#include <functional>

#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// Gives work to a stream of the emulation, which does or records it: see emulated_stream.h. Without a stream
// the work is done at once.
void Give(Stream stream, std::function<void()> work);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_EMULATED_GIVE_H_
