// TIFF files.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/data/formats/test_files.h"
#include "engine/data/formats/test_jpeg.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

namespace tandem {

namespace {

constexpr int kShort = 3, kLong = 4;
constexpr int kBits = 258, kPhotometric = 262, kOffset = 273, kOrientation = 274, kSamples = 277, kRows = 278,
              kBytes = 279, kColours = 320, kTileWidth = 322, kTileHeight = 323, kTileOffset = 324,
              kTileBytes = 325, kExtraSamples = 338;
constexpr int kPlain = 1, kFax4 = 4, kLzw = 5, kJpeg = 7, kDeflate = 8, kPackBits = 32773;

// A file of 3 x 2 pixels. At first, a pixel is a byte of grey.
class TiffFile {
 public:
  TiffFile(int compression, std::string pixels) : data_(std::move(pixels)) {
    const std::pair<int, uint64_t> shorts[] = {
        {256, 3}, {257, 2}, {kBits, 8}, {259, compression}, {kPhotometric, 1}, {kSamples, 1}, {kRows, 2}};
    for (const auto& [tag, value] : shorts) Set(tag, kShort, value);
    Set(kOffset, kLong, 8);
    Set(kBytes, kLong, data_.size());
  }

  TiffFile& Set(int tag, int type, uint64_t value) { return SetEntry(tag, type, 1, value); }
  // Sets at least 3 numbers.
  TiffFile& SetShorts(int tag, const std::vector<int>& numbers) {
    SetEntry(tag, kShort, numbers.size(), 8 + data_.size());
    for (const int number : numbers) data_ += Little(number, 2);
    return *this;
  }
  // Makes the pixels a tile of 16 x 16 pixels.
  TiffFile& Tile() {
    for (const int tag : {kOffset, kRows, kBytes}) entries_.erase(tag);
    Set(kTileWidth, kShort, 16);
    Set(kTileHeight, kShort, 16);
    Set(kTileOffset, kLong, 8);
    return Set(kTileBytes, kLong, data_.size());
  }

  std::string Content() const {
    std::string file =
        std::string("II*\0", 4) + Little(8 + data_.size(), 4) + data_ + Little(entries_.size(), 2);
    for (const auto& [tag, entry] : entries_) file += entry;
    return file + Little(0, 4);
  }

 private:
  TiffFile& SetEntry(int tag, int type, uint64_t count, uint64_t value) {
    entries_[tag] = Little(tag, 2) + Little(type, 2) + Little(count, 4) + Little(value, 4);
    return *this;
  }

  std::string data_;                    // The pixels, then lists of numbers.
  std::map<int, std::string> entries_;  // By their tags, because a file sorts them.
};

}  // namespace

std::vector<std::string> Seeds() {
  const std::string deflated("\x78\x01\x01\x06\0\xf9\xffpixels\x09\x0d\x02\x96", 17);
  const std::string jpeg = Jpeg({.width = 3, .height = 2, .channels = 1});
  return {TiffFile(kPlain, "pixels").Content(),
          TiffFile(kPackBits, std::string("\5pixels", 7)).Content(),
          TiffFile(kLzw, std::string("\x80\x1c\xc5\0\x40", 5)).Content(),
          TiffFile(kFax4, std::string("\x26\xa0\x01\0\x10", 5)).Set(kBits, kShort, 1).Content(),
          TiffFile(kDeflate, deflated).Content(),
          TiffFile(kJpeg, jpeg).Content(),
          TiffFile(kPlain, "pixels").Set(kOrientation, kShort, 6).Content(),
          TiffFile(kPlain, std::string(12, 'p')).Set(kBits, kShort, 16).Content(),
          TiffFile(kPlain, std::string(18, 'p'))
              .Set(kPhotometric, kShort, 2)
              .Set(kSamples, kShort, 3)
              .SetShorts(kBits, {8, 8, 8})
              .Content(),
          TiffFile(kPlain, std::string(24, 'p'))
              .Set(kPhotometric, kShort, 2)
              .Set(kSamples, kShort, 4)
              .Set(kExtraSamples, kShort, 2)
              .SetShorts(kBits, {8, 8, 8, 8})
              .Content(),
          TiffFile(kPlain, "pp")
              .Set(kPhotometric, kShort, 3)
              .Set(kBits, kShort, 2)
              .SetShorts(kColours, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
              .Content(),
          TiffFile(kPlain, std::string(256, 't')).Tile().Content()};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
