#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_H_

#include <cstdint>

namespace tandem::cuda {

// Images [N, C, H, W] as kernels see them, [outer][height][width][lanes]: channels last, an image is one of
// `outer` and channels are lanes; plain, each channel is one of `outer` and there is one lane.
struct ImageSizes {
  int64_t outer = 0;
  int height = 0;
  int width = 0;
  int lanes = 1;
  int64_t pixels() const { return static_cast<int64_t>(height) * width; }
  int64_t elements() const { return outer * pixels() * lanes; }
};

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_H_
