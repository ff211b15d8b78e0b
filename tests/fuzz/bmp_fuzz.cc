// BMP files.

#include <string>
#include <vector>

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

namespace tandem {

namespace {

// Returns a file of 3 x 2 pixels.
std::string Bmp(int bits, int compression, const std::string& palette, const std::string& pixels) {
  const std::string header = Little(40, 4) + Little(3, 4) + Little(2, 4) + Little(1, 2) + Little(bits, 2) +
                             Little(compression, 4) + std::string(20, '\0');
  const uint64_t begin = 14 + header.size() + palette.size();
  return "BM" + Little(begin + pixels.size(), 4) + Little(0, 4) + Little(begin, 4) + header + palette +
         pixels;
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string palette16(64, '\x21'), palette256(1024, '\x21');
  return {Bmp(24, 0, "", std::string(24, 'p')),
          Bmp(32, 0, "", std::string(24, 'p')),
          Bmp(16, 3, Little(0xf800, 4) + Little(0x7e0, 4) + Little(0x1f, 4), std::string(16, 'p')),
          Bmp(1, 0, std::string(8, '\x21'), std::string(8, 'p')),
          Bmp(4, 2, palette16, std::string("\3\x12\0\0\0\3\x12\x30\0\1", 10)),
          Bmp(8, 1, palette256, std::string("\3\1\0\2\0\1\0\3\1\2\3\0\0\1", 14))};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
