#include "engine/data/formats/exif.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kByte = 1, kShort = 3, kLong = 4;
constexpr size_t kEntryBytes = 12;

// Numbers at places of EXIF data. A place outside of the data has the number 0.
class Numbers {
 public:
  Numbers(absl::string_view data, bool big_endian) : data_(data), big_endian_(big_endian) {}

  uint32_t At(size_t place, size_t bytes) const {
    if (place > data_.size() || data_.size() - place < bytes) return 0;
    uint32_t number = 0;
    for (size_t i = 0; i < bytes; ++i) {
      const size_t next = big_endian_ ? place + i : place + bytes - 1 - i;
      number = number << 8 | static_cast<uint8_t>(data_[next]);
    }
    return number;
  }

 private:
  const absl::string_view data_;
  const bool big_endian_;
};

}  // namespace

int ExifOrientation(absl::string_view exif) {
  const absl::string_view order = exif.substr(0, 2);
  if (order != "II" && order != "MM") return 1;
  const Numbers numbers(exif, order == "MM");
  if (numbers.At(2, 2) != 42) return 1;
  const size_t directory = numbers.At(4, 4);
  const uint32_t entries = numbers.At(directory, 2);
  for (uint32_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > exif.size()) break;
    if (numbers.At(entry, 2) != kOrientationTag) continue;
    const uint32_t type = numbers.At(entry + 2, 2);
    const size_t bytes = type == kByte ? 1 : type == kShort ? 2 : type == kLong ? 4 : 0;
    const uint32_t orientation = numbers.At(entry + 8, bytes);
    return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
  }
  return 1;
}

Image TurnImage(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const int64_t height = image.height, width = image.width;
  // The sides change places if the picture lies on a side.
  const bool lies = orientation >= 5;
  Image turned{.channels = image.channels,
               .height = lies ? width : height,
               .width = lies ? height : width,
               .pixels = {}};
  if (image.pixels.empty()) return turned;
  turned.pixels.resize(image.pixels.size());
  // Where the pixels of a new row begin in the old picture, and the steps to the next column and the next
  // row.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const int64_t right = from_right ? -1 : 1, down = from_bottom ? -width : width;
  const int64_t begin = (from_right ? width - 1 : 0) + (from_bottom ? (height - 1) * width : 0);
  const int64_t column_step = lies ? down : right, row_step = lies ? right : down;
  const int64_t channels = image.channels;
  // Squares of pixels stay in the cache while rows become columns.
  constexpr int64_t kSquare = 32;
  for (int64_t top = 0; top < turned.height; top += kSquare) {
    const int64_t bottom = std::min(top + kSquare, turned.height);
    for (int64_t left = 0; left < turned.width; left += kSquare) {
      const int64_t end = std::min(left + kSquare, turned.width);
      for (int64_t y = top; y < bottom; ++y) {
        uint8_t* to = turned.pixels.data() + (y * turned.width + left) * channels;
        for (int64_t x = left; x < end; ++x) {
          const uint8_t* from = image.pixels.data() + (begin + y * row_step + x * column_step) * channels;
          for (int64_t c = 0; c < channels; ++c) *to++ = from[c];
        }
      }
    }
  }
  return turned;
}

}  // namespace tandem
