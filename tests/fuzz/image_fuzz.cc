// PNG and JPEG files.

#include <zlib.h>

#include <string>
#include <vector>

#include "engine/data/formats/test_files.h"
#include "engine/data/formats/test_jpeg.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

namespace tandem {
namespace {

// `before` and `behind` are chunks around the pixels.
std::string Png(int color_type, int channels, int depth, const std::string& before = "",
                const std::string& behind = "") {
  const std::string header = std::string("\0\0\0\x03\0\0\0\x02", 8) + static_cast<char>(depth) +
                             static_cast<char>(color_type) + std::string(3, '\0');
  const std::string row = std::string(1, '\0') + std::string((3 * channels * depth + 7) / 8, '\x11');
  std::string pixels = row + row;
  std::string packed(1000, '\0');
  uLongf packed_size = packed.size();
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &packed_size,
             reinterpret_cast<const Bytef*>(pixels.data()), pixels.size());
  packed.resize(packed_size);
  const std::string palette = color_type == 3 ? PngChunk("PLTE", std::string(3 * 16, '\x22')) : "";
  return "\x89PNG\r\n\x1A\n" + PngChunk("IHDR", header) + before + palette + PngChunk("IDAT", packed) +
         behind + PngChunk("IEND", "");
}

}  // namespace

std::vector<std::string> Seeds() {
  return {Png(0, 1, 8), Png(0, 1, 1), Png(2, 3, 8), Png(2, 3, 16), Png(3, 1, 4), Png(6, 4, 8), Png(4, 2, 8),
          Png(2, 3, 8, PngChunk("eXIf", OrientationExif(6))),
          Png(2, 3, 8, "", PngChunk("eXIf", OrientationExif(6))), Jpeg({.channels = 1}),
          Jpeg({.channels = 3}), Jpeg({.channels = 3, .progressive = true}), Jpeg({.channels = 4}),
          // Wide enough to be decoded in part.
          Jpeg({.width = 90, .height = 20, .channels = 1}), Jpeg({.width = 90, .height = 20, .channels = 3}),
          Jpeg({.channels = 3, .exif = OrientationExif(6)}),
          Jpeg({.channels = 4, .progressive = true, .exif = OrientationExif(6)})};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
