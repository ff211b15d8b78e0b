#ifndef TANDEM_ENGINE_GRAPH_OPS_AUGMENTATION_H_
#define TANDEM_ENGINE_GRAPH_OPS_AUGMENTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// The values of pixels outside an image: zero, the image mirrored at its border, or the nearest border pixel.
// The mirrored image does not repeat the border.
enum class ImageFill : uint8_t { kZero, kReflect, kEdge };
// Returns "zero", "reflect" or "edge".
absl::string_view ToString(ImageFill fill);

// A change of images by random numbers:
//   op(images uint8 [N, C, H, W], drawn float64 [N, K]) -> uint8 [N, C, H, W]
// Row i of `drawn` has the numbers for image i, beginning at column `column`. The results equal those of
// engine/data/augment to the bit. Not differentiable.
class AugmentOp : public Op {
 public:
  // Returns the number of columns that the op reads.
  virtual int64_t columns() const = 0;
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

  int64_t column;

 protected:
  explicit AugmentOp(int64_t column) : column(column) {}
};

// Mirrors an image if its number is not 0: top to bottom if `vertical`, else left to right.
class FlipImagesOp final : public AugmentOp {
 public:
  FlipImagesOp(int64_t column, bool vertical) : AugmentOp(column), vertical(vertical) {}
  absl::string_view kind() const override { return "flip_images"; }
  int64_t columns() const override { return 1; }
  std::string attributes() const override;

  bool vertical;
};

// Moves an image by whole pixels. The numbers: pixels to the right, pixels down. At most the image's own size
// in each direction.
class TranslateImagesOp final : public AugmentOp {
 public:
  TranslateImagesOp(int64_t column, ImageFill fill) : AugmentOp(column), fill(fill) {}
  absl::string_view kind() const override { return "translate_images"; }
  int64_t columns() const override { return 2; }
  std::string attributes() const override;

  ImageFill fill;
};

// Rotates, scales or shears an image about its centre. The numbers: xx, xy, yx, yy. The pixel (x, y),
// relative to the centre, is read at (xx x + xy y, yx x + yy y), with y downwards. Interpolation is bilinear,
// and the result is rounded.
class ResampleImagesOp final : public AugmentOp {
 public:
  ResampleImagesOp(int64_t column, ImageFill fill) : AugmentOp(column), fill(fill) {}
  absl::string_view kind() const override { return "resample_images"; }
  int64_t columns() const override { return 4; }
  std::string attributes() const override;

  ImageFill fill;
};

// Sets a rectangle to zero in all channels. The numbers: first column, end column, first row, end row. The
// ends are exclusive. Changes nothing if an end is not above its first.
class EraseImagesOp final : public AugmentOp {
 public:
  explicit EraseImagesOp(int64_t column) : AugmentOp(column) {}
  absl::string_view kind() const override { return "erase_images"; }
  int64_t columns() const override { return 4; }
};

// Computes m + f (x - m) in float32, rounded and clamped to [0, 255]. The number is f. m is the mean of the
// image over all channels if `about_mean`, else 0.
class SpreadImagesOp final : public AugmentOp {
 public:
  SpreadImagesOp(int64_t column, bool about_mean) : AugmentOp(column), about_mean(about_mean) {}
  absl::string_view kind() const override { return "spread_images"; }
  int64_t columns() const override { return 1; }
  std::string attributes() const override;

  bool about_mean;
};

// Enlarges a rectangle of an image to the image's size. The numbers: left, top, width, height. The rectangle
// is in the image, with at least a pixel. A pixel has its centre at half numbers. Interpolation is bilinear
// within the rectangle, first across and then down, in float32, and the result is rounded.
class EnlargeImagesOp final : public AugmentOp {
 public:
  explicit EnlargeImagesOp(int64_t column) : AugmentOp(column) {}
  absl::string_view kind() const override { return "enlarge_images"; }
  int64_t columns() const override { return 4; }
};

// A change of images of three channels: red, green and blue.
class ColourOp : public AugmentOp {
 public:
  int64_t columns() const override { return 1; }
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

 protected:
  using AugmentOp::AugmentOp;
};

// Computes f x + (1 - f) grey in float32, rounded and clamped to [0, 255]. The number is f. The pixel's grey
// is (0.299 red + 0.587 green) + 0.114 blue.
class SaturateImagesOp final : public ColourOp {
 public:
  explicit SaturateImagesOp(int64_t column) : ColourOp(column) {}
  absl::string_view kind() const override { return "saturate_images"; }
};

// Shifts the hue of each pixel. The number is the shift, as a share of the colour circle, in [-0.5, 0.5].
// In float32, with `most` and `least` of the pixel's three numbers, and chroma = most - least:
//   hue = (green - blue) / chroma if red is most, else 2 + (blue - red) / chroma if green is most, else
//   4 + (red - green) / chroma. Then 6 times the number is added, modulo 6.
//   red = least + chroma clamp(|hue - 3| - 1), green = least + chroma clamp(2 - |hue - 2|), blue = least +
//   chroma clamp(2 - |hue - 4|), with shares clamped to [0, 1] and results rounded.
class ShiftHuesOp final : public ColourOp {
 public:
  explicit ShiftHuesOp(int64_t column) : ColourOp(column) {}
  absl::string_view kind() const override { return "shift_hues"; }
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_AUGMENTATION_H_
