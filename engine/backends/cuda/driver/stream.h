#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_STREAM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_STREAM_H_

// CUDA's own type. So this header needs no header of the toolkit.
struct CUstream_st;

namespace tandem::cuda {

// cudaStream_t: work is done in its order.
using Stream = CUstream_st*;

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_STREAM_H_
