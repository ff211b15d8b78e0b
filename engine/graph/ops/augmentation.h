#ifndef TANDEM_ENGINE_GRAPH_OPS_AUGMENTATION_H_
#define TANDEM_ENGINE_GRAPH_OPS_AUGMENTATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/graph/op.h"

namespace tandem {

// What stands where an image's own pixels do not reach: zero, the image mirrored at its border, which is not
// repeated, or the nearest pixel of the border.
enum class ImageFill : uint8_t { kZero, kReflect, kEdge };
// "zero", "reflect", "edge".
absl::string_view ToString(ImageFill fill);

// A change of images by numbers that were drawn for each of them:
//   op(images uint8 [N, C, H, W], drawn float64 [N, K]) -> uint8 [N, C, H, W]
// where row i of `drawn` has, from column `column` on, what the op takes for image i. Whoever draws them and
// these ops agree with engine/data/augment to the bit. Not differentiable.
class AugmentOp : public Op {
 public:
  // Columns that the op takes.
  virtual int64_t columns() const = 0;
  std::string attributes() const override;
  absl::StatusOr<std::vector<TensorType>> Infer(absl::Span<const TensorType> inputs) const override;

  int64_t column;

 protected:
  explicit AugmentOp(int64_t column) : column(column) {}
};

// Mirrors an image, left to right or, with `vertical`, top to bottom, where the number is not 0.
class FlipImagesOp final : public AugmentOp {
 public:
  FlipImagesOp(int64_t column, bool vertical) : AugmentOp(column), vertical(vertical) {}
  absl::string_view kind() const override { return "flip_images"; }
  int64_t columns() const override { return 1; }
  std::string attributes() const override;

  bool vertical;
};

// Moves an image by whole pixels: numbers are how many to the right and how many down. At most one whole
// image in each direction.
class TranslateImagesOp final : public AugmentOp {
 public:
  TranslateImagesOp(int64_t column, ImageFill fill) : AugmentOp(column), fill(fill) {}
  absl::string_view kind() const override { return "translate_images"; }
  int64_t columns() const override { return 2; }
  std::string attributes() const override;

  ImageFill fill;
};

// Turns, scales or shears an image about its centre: numbers are xx, xy, yx, yy, and the pixel (x, y), seen
// from the centre, is read at (xx x + xy y, yx x + yy y), rows counting downwards. Bilinear: the four pixels
// about the place, each counting by its nearness, and the sum rounded.
class ResampleImagesOp final : public AugmentOp {
 public:
  ResampleImagesOp(int64_t column, ImageFill fill) : AugmentOp(column), fill(fill) {}
  absl::string_view kind() const override { return "resample_images"; }
  int64_t columns() const override { return 4; }
  std::string attributes() const override;

  ImageFill fill;
};

// Sets a rectangle to zero, in all channels: numbers are its first column, the one behind its last, its first
// row, the one behind its last. None where that is not behind the first.
class EraseImagesOp final : public AugmentOp {
 public:
  explicit EraseImagesOp(int64_t column) : AugmentOp(column) {}
  absl::string_view kind() const override { return "erase_images"; }
  int64_t columns() const override { return 4; }
};

// x -> m + f (x - m), rounded and kept from 0 to 255, in float32: the number is f, and m is 0 or, with
// `about_mean`, the mean of the image, all channels together.
class SpreadImagesOp final : public AugmentOp {
 public:
  SpreadImagesOp(int64_t column, bool about_mean) : AugmentOp(column), about_mean(about_mean) {}
  absl::string_view kind() const override { return "spread_images"; }
  int64_t columns() const override { return 1; }
  std::string attributes() const override;

  bool about_mean;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_GRAPH_OPS_AUGMENTATION_H_
