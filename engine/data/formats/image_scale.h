#ifndef TANDEM_ENGINE_DATA_FORMATS_IMAGE_SCALE_H_
#define TANDEM_ENGINE_DATA_FORMATS_IMAGE_SCALE_H_

#include <cstdint>
#include <vector>

#include "engine/data/formats/scale_kernels.h"

namespace tandem {

// A side of an image that is scaled from `size` to `scaled` pixels. Only `count` pixels from `first` on are
// needed.
struct ScaledSide {
  int64_t size = 0;
  int64_t scaled = 0;
  int64_t first = 0;
  int64_t count = 0;

  friend bool operator==(const ScaledSide&, const ScaledSide&) = default;
};

// Returns the old pixels of each needed new pixel. If a side shrinks, a new pixel weights the old pixels by
// the covered part. If the side grows, a new pixel weights the two nearest pixels by their nearness.
std::vector<Taps> TapsOf(const ScaledSide& side);

// Where a scaled image is written: a plane of bytes for each channel.
struct Planes {
  uint8_t* pixels = nullptr;  // The first pixel of the first plane.
  int64_t plane_stride = 0;   // From a plane to the next, in bytes.
  int64_t row_stride = 0;     // From a row to the next, in bytes.
};

// Scales an image of bytes, and takes its rows from the top to the bottom. Writes a new row as soon as its
// old rows are there. Memory: a few rows, which the next image uses again. The result depends neither on the
// number of rows in a call nor on the machine. Not thread-safe.
class RowScaler {
 public:
  explicit RowScaler(const ScaleKernels& kernels = *AllScaleKernels().front()) : kernels_(&kernels) {}

  // Begins an image. `channels` is 1 or 3. The new image is [channels, vertical.count, horizontal.count].
  void Begin(int64_t channels, const ScaledSide& vertical, const ScaledSide& horizontal, const Planes& to);

  // The columns of the old image that are needed.
  int64_t first_column() const { return first_column_; }
  int64_t columns() const { return columns_; }

  // Takes the next `count` rows. `rows` is the pixel of the first row in column first_column(), with all
  // channels of a pixel side by side. The rows are `stride` bytes apart.
  void Add(const uint8_t* rows, int64_t count, int64_t stride);

 private:
  // Finds the taps of the sides.
  void FindTaps(const ScaledSide& vertical, const ScaledSide& horizontal);
  // Returns how many of the next rows were used.
  int64_t AddSome(const uint8_t* rows, int64_t count, int64_t stride);
  void AddMiddle(const uint8_t* rows, int64_t count, int64_t stride);
  void Copy(const uint8_t* row);
  void FinishSums(const uint8_t* last);
  void AddNarrow(const uint8_t* row);
  // Scales `line_` to the new width.
  void Narrow(std::vector<float>& to) const;
  // Writes the next new row.
  void Write(const std::vector<float>& planes);

  const ScaleKernels* kernels_;
  int64_t channels_ = 0;
  Planes to_;
  int64_t next_old_ = 0;  // The next old row.
  int64_t next_new_ = 0;  // The next new row.

  // The next image often has the sides of this image.
  ScaledSide vertical_;
  ScaledSide horizontal_;
  std::vector<Taps> down_;
  std::vector<Taps> across_;  // In the needed columns. The padding has no weights.
  int64_t padded_width_ = 0;  // The new width, as a multiple of 4.
  bool copies_ = false;       // Nothing is scaled.
  bool narrow_first_ =
      false;  // Rows are narrowed before they are weighted: there are more new rows than old.
  int64_t first_column_ = 0;
  int64_t columns_ = 0;

  // Of the needed columns: the first old row of the next new row, and the sum of the rows behind.
  std::vector<uint8_t> first_row_;
  std::vector<uint16_t> words_;
  std::vector<float> sums_;  // Empty unless the words were too short.
  int64_t summed_rows_ = 0;

  std::vector<float> line_;  // A row of the old width, with a float more.
  // Rows of the new width, [channels, padded_width_].
  std::vector<float> now_;
  std::vector<float> before_;  // If narrow_first_: the old row before `now_`.
  std::vector<float> mixed_;   // If narrow_first_: the next new row.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IMAGE_SCALE_H_
