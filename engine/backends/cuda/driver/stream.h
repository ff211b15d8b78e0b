#ifndef TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_STREAM_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_STREAM_H_

// CUDA's own, so that this header needs none of the toolkit's.
struct CUstream_st;

namespace tandem::cuda {

// cudaStream_t: work is done in the order in which it was put in.
using Stream = CUstream_st*;

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_DRIVER_STREAM_H_
