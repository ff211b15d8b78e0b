#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_IMAGE_H_

#include <cstdint>

namespace tandem::cuda {

// The kernels' view of images [N, C, H, W]: [outer][height][width][lanes]. With channels last, `outer` counts
// images and lanes are channels. In plain images, `outer` counts the channels of all images, and there is a
// single lane.
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
