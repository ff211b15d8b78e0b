#include "engine/backends/cuda/kernels/augmentation.h"

#include "engine/backends/cuda/kernels/launch.h"
#include "engine/backends/cuda/kernels/number.h"

namespace tandem::cuda {
namespace {

// In units of T, which divide all rows.
template <typename T>
void Gather(const SampleRows& rows, int64_t samples, const int32_t* indices, Stream stream) {
  int64_t units = 0;
  for (int i = 0; i < rows.count; ++i) units += rows.data[i].bytes / static_cast<int64_t>(sizeof(T));
  ForEach(samples * units, stream, [=] __device__(int64_t i) {
    const int64_t sample = i / units;
    int64_t unit = i - sample * units;
    const int64_t index = indices[sample];
#pragma unroll
    for (int d = 0; d < SampleRows::kMost; ++d) {
      if (d >= rows.count) return;
      const int64_t of_row = rows.data[d].bytes / static_cast<int64_t>(sizeof(T));
      if (unit < of_row) {
        static_cast<T*>(rows.data[d].batch)[sample * of_row + unit] =
            static_cast<const T*>(rows.data[d].data)[index * of_row + unit];
        return;
      }
      unit -= of_row;
    }
  });
}

// The place of a byte in an image.
struct BytePlace {
  int64_t image;
  int64_t plane;  // The beginning of its plane.
  int row;
  int column;
};

__device__ __forceinline__ BytePlace PlaceOf(const ImageBytes& images, int64_t i) {
  const int64_t of_plane = static_cast<int64_t>(images.height) * images.width;
  const int64_t plane = i / of_plane;
  const int rest = static_cast<int>(i - plane * of_plane);
  const int row = rest / images.width;
  return {plane / images.channels, plane * of_plane, row, rest - row * images.width};
}

// Returns the place where pixel `i` of a line of `n` is read, or -1 for a zero.
__device__ __forceinline__ int64_t FillIndex(int64_t i, int n, Beyond fill) {
  if (i >= 0 && i < n) return i;
  if (fill == Beyond::kZero) return -1;
  if (fill == Beyond::kEdge) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  const int64_t period = 2 * static_cast<int64_t>(n) - 2;
  const int64_t within = ((i % period) + period) % period;
  return within < n ? within : period - within;
}

__device__ __forceinline__ uint8_t ByteAt(const ImageBytes& images, int64_t plane, int64_t row,
                                          int64_t column) {
  return row < 0 || column < 0 ? 0 : images.x[plane + row * images.width + column];
}

// a + part (b - a) as a sum of two products without fusion: the rounding of the host.
__device__ __forceinline__ float Between(float a, float b, float part) {
  return __fadd_rn(__fmul_rn(a, 1 - part), __fmul_rn(b, part));
}

__device__ __forceinline__ double Mapped(double a, double x, double b, double y, double centre) {
  return __dadd_rn(__dadd_rn(__dmul_rn(a, x), __dmul_rn(b, y)), centre);
}

// The two pixels of a line between which a new pixel lies, and the second one's weight.
struct PixelPair {
  int first;
  int second;
  float part;
};

// Returns the pair of new pixel `i` of `count`. `size` pixels from `begin` on are read.
__device__ __forceinline__ PixelPair PairAt(int i, double begin, double size, int count) {
  const double centre = __dadd_rn(__dmul_rn(i + 0.5, size / count), -0.5);
  const double at = min(max(centre, 0.0), size - 1);
  const double first = floor(at);
  return {static_cast<int>(begin + first), static_cast<int>(begin + min(first + 1, size - 1)),
          static_cast<float>(at - first)};
}

__device__ __forceinline__ float Clamped(float x, float most) { return min(max(x, 0.0f), most); }

// Calls change(a pixel's image, its numbers), which changes the numbers: red, green, blue.
template <typename Change>
void ForEachColour(const ImageBytes& images, Stream stream, const Change& change) {
  ForEach(images.outer * images.of_plane(), stream, [=] __device__(int64_t i) {
    const int64_t of_plane = static_cast<int64_t>(images.height) * images.width;
    const int64_t image = i / of_plane;
    const int64_t at = i + 2 * image * of_plane;
    float colour[3];
    for (int c = 0; c < 3; ++c) colour[c] = images.x[at + c * of_plane];
    change(image, colour);
    for (int c = 0; c < 3; ++c) {
      images.y[at + c * of_plane] = static_cast<uint8_t>(Clamped(colour[c], 255.0f) + 0.5f);
    }
  });
}

// A block for each image of `bytes` bytes: their mean, then each byte's difference from it times a factor.
TANDEM_KERNEL SpreadKernel(Grid grid, ImageBytes images, int64_t bytes, bool about_mean) {
  __shared__ uint64_t sums[kThreads];
  for (BlockLoop block(grid); block.exists(); block.Next()) {
    const int64_t image = block.x;
    const uint8_t* x = images.x + image * bytes;
    float mean = 0;
    if (about_mean) {
      uint64_t sum = 0;
      for (int64_t i = threadIdx.x; i < bytes; i += blockDim.x) sum += x[i];
      sums[threadIdx.x] = sum;
      __syncthreads();
      // blockDim.x is a power of two.
      for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
      }
      mean = static_cast<float>(static_cast<double>(sums[0]) / static_cast<double>(bytes));
    }
    const auto factor = static_cast<float>(images.drawn[image * images.stride]);
    for (int64_t i = threadIdx.x; i < bytes; i += blockDim.x) {
      const float spread = __fadd_rn(mean, __fmul_rn(factor, static_cast<float>(x[i]) - mean));
      images.y[image * bytes + i] = static_cast<uint8_t>(min(max(spread, 0.0f), 255.0f) + 0.5f);
    }
  }
}

}  // namespace

void GatherSamples(const SampleRows& rows, int64_t samples, const int32_t* indices, Stream stream) {
  // The lowest bit that is set in any of them gives the largest unit that divides all.
  uint64_t bits = 0;
  for (int i = 0; i < rows.count; ++i) {
    bits |= static_cast<uint64_t>(rows.data[i].bytes) | reinterpret_cast<uintptr_t>(rows.data[i].data) |
            reinterpret_cast<uintptr_t>(rows.data[i].batch);
  }
  if (bits % 16 == 0) return Gather<Pack<uint32_t, 4>>(rows, samples, indices, stream);
  if (bits % 4 == 0) return Gather<uint32_t>(rows, samples, indices, stream);
  Gather<uint8_t>(rows, samples, indices, stream);
}

void FlipImages(const ImageBytes& images, bool vertical, Stream stream) {
  ForEach(images.outer * images.of_image(), stream, [=] __device__(int64_t i) {
    BytePlace at = PlaceOf(images, i);
    if (images.drawn[at.image * images.stride] != 0) {
      if (vertical) {
        at.row = images.height - 1 - at.row;
      } else {
        at.column = images.width - 1 - at.column;
      }
    }
    images.y[i] = ByteAt(images, at.plane, at.row, at.column);
  });
}

void TranslateImages(const ImageBytes& images, Beyond fill, Stream stream) {
  ForEach(images.outer * images.of_image(), stream, [=] __device__(int64_t i) {
    const BytePlace at = PlaceOf(images, i);
    const double* drawn = images.drawn + at.image * images.stride;
    const auto right = static_cast<int64_t>(drawn[0]);
    const auto down = static_cast<int64_t>(drawn[1]);
    images.y[i] = ByteAt(images, at.plane, FillIndex(at.row - down, images.height, fill),
                         FillIndex(at.column - right, images.width, fill));
  });
}

void ResampleImages(const ImageBytes& images, Beyond fill, Stream stream) {
  ForEach(images.outer * images.of_image(), stream, [=] __device__(int64_t i) {
    const BytePlace at = PlaceOf(images, i);
    const double* drawn = images.drawn + at.image * images.stride;
    const double centre_x = 0.5 * (images.width - 1);
    const double centre_y = 0.5 * (images.height - 1);
    const double x = at.column - centre_x;
    const double y = at.row - centre_y;
    const double at_x = Mapped(drawn[0], x, drawn[1], y, centre_x);
    const double at_y = Mapped(drawn[2], x, drawn[3], y, centre_y);
    const double floor_x = floor(at_x);
    const double floor_y = floor(at_y);
    const auto part_x = static_cast<float>(at_x - floor_x);
    const auto part_y = static_cast<float>(at_y - floor_y);
    const int64_t x0 = FillIndex(static_cast<int64_t>(floor_x), images.width, fill);
    const int64_t x1 = FillIndex(static_cast<int64_t>(floor_x) + 1, images.width, fill);
    const int64_t y0 = FillIndex(static_cast<int64_t>(floor_y), images.height, fill);
    const int64_t y1 = FillIndex(static_cast<int64_t>(floor_y) + 1, images.height, fill);
    const float upper = Between(ByteAt(images, at.plane, y0, x0), ByteAt(images, at.plane, y0, x1), part_x);
    const float lower = Between(ByteAt(images, at.plane, y1, x0), ByteAt(images, at.plane, y1, x1), part_x);
    images.y[i] = static_cast<uint8_t>(Between(upper, lower, part_y) + 0.5f);
  });
}

void EraseImages(const ImageBytes& images, Stream stream) {
  ForEach(images.outer * images.of_image(), stream, [=] __device__(int64_t i) {
    const BytePlace at = PlaceOf(images, i);
    const double* drawn = images.drawn + at.image * images.stride;
    const bool erased =
        at.column >= drawn[0] && at.column < drawn[1] && at.row >= drawn[2] && at.row < drawn[3];
    images.y[i] = erased ? 0 : images.x[i];
  });
}

void SpreadImages(const ImageBytes& images, bool about_mean, Stream stream) {
  Launch(SpreadKernel, {static_cast<unsigned>(images.outer)}, Threads(), stream, images, images.of_image(),
         about_mean);
}

void EnlargeImages(const ImageBytes& images, Stream stream) {
  ForEach(images.outer * images.of_image(), stream, [=] __device__(int64_t i) {
    const BytePlace at = PlaceOf(images, i);
    const double* drawn = images.drawn + at.image * images.stride;
    const PixelPair x = PairAt(at.column, drawn[0], drawn[2], images.width);
    const PixelPair y = PairAt(at.row, drawn[1], drawn[3], images.height);
    const float upper = Between(ByteAt(images, at.plane, y.first, x.first),
                                ByteAt(images, at.plane, y.first, x.second), x.part);
    const float lower = Between(ByteAt(images, at.plane, y.second, x.first),
                                ByteAt(images, at.plane, y.second, x.second), x.part);
    images.y[i] = static_cast<uint8_t>(Between(upper, lower, y.part) + 0.5f);
  });
}

void SaturateImages(const ImageBytes& images, Stream stream) {
  ForEachColour(images, stream, [=] __device__(int64_t image, float* colour) {
    const auto factor = static_cast<float>(images.drawn[image * images.stride]);
    const float grey = __fadd_rn(__fadd_rn(__fmul_rn(0.299f, colour[0]), __fmul_rn(0.587f, colour[1])),
                                 __fmul_rn(0.114f, colour[2]));
    const float rest = __fmul_rn(1 - factor, grey);
    for (int c = 0; c < 3; ++c) colour[c] = __fadd_rn(__fmul_rn(factor, colour[c]), rest);
  });
}

void ShiftHues(const ImageBytes& images, Stream stream) {
  ForEachColour(images, stream, [=] __device__(int64_t image, float* colour) {
    const float red = colour[0], green = colour[1], blue = colour[2];
    const float most = max(max(red, green), blue), least = min(min(red, green), blue);
    const float chroma = most - least;
    if (chroma == 0) return;
    float hue = most == red     ? (green - blue) / chroma
                : most == green ? 2 + (blue - red) / chroma
                                : 4 + (red - green) / chroma;
    hue += static_cast<float>(6 * images.drawn[image * images.stride]);
    if (hue < 0) hue += 6;
    if (hue >= 6) hue -= 6;
    const float shares[3] = {fabsf(hue - 3) - 1, 2 - fabsf(hue - 2), 2 - fabsf(hue - 4)};
    for (int c = 0; c < 3; ++c) colour[c] = __fadd_rn(least, __fmul_rn(chroma, Clamped(shares[c], 1.0f)));
  });
}

}  // namespace tandem::cuda
