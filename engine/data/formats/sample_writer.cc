#include "engine/data/formats/sample_writer.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

// The memory of the rows of a wider image is freed.
constexpr int64_t kKeptWidth = 1 << 14;

// Writes the grey of red, green and blue pixels (ITU-R BT.601).
void ToGrey(const uint8_t* colours, int64_t pixels, uint8_t* grey) {
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* colour = colours + 3 * i;
    grey[i] = static_cast<uint8_t>((299 * colour[0] + 587 * colour[1] + 114 * colour[2] + 500) / 1000);
  }
}

}  // namespace

void SampleWriter::Reset(const PictureForm& form, uint8_t* to) {
  form_ = form;
  to_ = to;
}

void SampleWriter::Begin(const Image& image) {
  const bool crops = form_.resize == v1::IMAGE_RESIZE_CROP, pads = form_.resize == v1::IMAGE_RESIZE_PAD;
  const double by_height = static_cast<double>(form_.height) / static_cast<double>(image.height);
  const double by_width = static_cast<double>(form_.width) / static_cast<double>(image.width);
  const double factor = crops ? std::max(by_height, by_width) : std::min(by_height, by_width);
  const auto side = [&](int64_t size, int64_t wanted) {
    ScaledSide one{.size = size, .scaled = wanted, .first = 0, .count = wanted};
    if (crops || pads) one.scaled = std::max<int64_t>(1, std::llround(static_cast<double>(size) * factor));
    // Rounding may miss the fitting side by a pixel.
    if (crops) one.scaled = std::max(one.scaled, wanted);
    if (pads) one.scaled = std::min(one.scaled, wanted);
    // Only the needed pixels take memory: a long thin image would become huge if its short side must fit.
    one.count = std::min(one.scaled, wanted);
    one.first = (one.scaled - one.count + 1) / 2;
    return one;
  };
  const ScaledSide vertical = side(image.height, form_.height), horizontal = side(image.width, form_.width);
  drops_colours_ = image.channels == 3 && form_.channels == 1;
  repeats_grey_ = image.channels == 1 && form_.channels == 3;
  image_width_ = image.width;
  const int64_t area = form_.height * form_.width;
  // A smaller image is centred on black.
  const int64_t top = (form_.height - vertical.count) / 2, left = (form_.width - horizontal.count) / 2;
  if (vertical.count != form_.height || horizontal.count != form_.width) {
    std::fill(to_, to_ + form_.channels * area, uint8_t{0});
  }
  scaler_.Begin(drops_colours_ ? 1 : image.channels, vertical, horizontal,
                {.pixels = to_ + top * form_.width + left, .plane_stride = area, .row_stride = form_.width});
}

void SampleWriter::Add(const uint8_t* rows, int64_t count, int64_t stride) {
  if (!drops_colours_) {
    scaler_.Add(rows, count, stride);
    return;
  }
  grey_.resize(columns());
  for (int64_t y = 0; y < count; ++y) {
    ToGrey(rows + y * stride, columns(), grey_.data());
    scaler_.Add(grey_.data(), 1, columns());
  }
}

void SampleWriter::Finish() {
  if (!repeats_grey_) return;
  const int64_t area = form_.height * form_.width;
  for (int64_t c = 1; c < 3; ++c) std::copy(to_, to_ + area, to_ + c * area);
}

void SampleWriter::Write(const Image& image) {
  Begin(image);
  Add(image.pixels.data() + first_column() * image.channels, image.height, image.width * image.channels);
  Finish();
}

uint8_t* SampleWriter::RowMemory(int64_t bytes) {
  if (static_cast<int64_t>(memory_.size()) < bytes) memory_.resize(bytes);
  return memory_.data();
}

void SampleWriter::Trim() {
  if (image_width_ > kKeptWidth) *this = SampleWriter();
}

}  // namespace tandem
