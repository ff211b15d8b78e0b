#ifndef TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_AUGMENTATION_H_
#define TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_AUGMENTATION_H_

#include <cstdint>

#include "engine/backends/cuda/driver/stream.h"

namespace tandem::cuda {

// The sources of a batch: rows of bytes of up to kMost data sets.
struct SampleRows {
  static constexpr int kMost = 4;
  struct Data {
    const void* data = nullptr;
    void* batch = nullptr;
    int64_t bytes = 0;  // Of a sample.
  };
  Data data[kMost] = {};
  int count = 0;
};

// batch[j] = data[indices[j]] for each data set, in a single launch.
void GatherSamples(const SampleRows& rows, int64_t samples, const int32_t* indices, Stream stream);

// Bytes of images, [outer][channels][height][width], with random numbers. The numbers of image n begin at
// drawn[n stride].
struct ImageBytes {
  int64_t outer = 0;
  int channels = 0;
  int height = 0;
  int width = 0;
  const uint8_t* x = nullptr;
  const double* drawn = nullptr;
  int64_t stride = 0;
  uint8_t* y = nullptr;  // Separate from x.

  int64_t of_plane() const { return static_cast<int64_t>(height) * width; }
  int64_t of_image() const { return channels * of_plane(); }
};

// The values outside an image: ImageFill of engine/graph/ops/augmentation.h.
enum class Beyond : uint8_t { kZero, kReflect, kEdge };

// The ops of engine/graph/ops/augmentation.h, equal to the bit.
void FlipImages(const ImageBytes& images, bool vertical, Stream stream);
void TranslateImages(const ImageBytes& images, Beyond fill, Stream stream);
void ResampleImages(const ImageBytes& images, Beyond fill, Stream stream);
void EraseImages(const ImageBytes& images, Stream stream);
void SpreadImages(const ImageBytes& images, bool about_mean, Stream stream);
void EnlargeImages(const ImageBytes& images, Stream stream);
void SaturateImages(const ImageBytes& images, Stream stream);
void ShiftHues(const ImageBytes& images, Stream stream);

}  // namespace tandem::cuda

#endif  // TANDEM_ENGINE_BACKENDS_CUDA_KERNELS_AUGMENTATION_H_
