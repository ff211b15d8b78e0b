// TIFF files.

#include <string>
#include <vector>

#include "engine/data/formats/test_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

namespace tandem {

namespace {

std::string Entry(int tag, int type, uint64_t value) {
  return Little(tag, 2) + Little(type, 2) + Little(1, 4) + Little(value, 4);
}

// Returns a grey file of 3 x 2 pixels.
std::string Tiff(int compression, const std::string& pixels) {
  const std::string entries = Entry(256, 3, 3) + Entry(257, 3, 2) + Entry(258, 3, 8) +
                              Entry(259, 3, compression) + Entry(262, 3, 1) + Entry(273, 4, 8) +
                              Entry(277, 3, 1) + Entry(278, 3, 2) + Entry(279, 4, pixels.size());
  return std::string("II*\0", 4) + Little(8 + pixels.size(), 4) + pixels + Little(9, 2) + entries +
         Little(0, 4);
}

}  // namespace

std::vector<std::string> Seeds() {
  return {Tiff(1, "pixels"), Tiff(32773, std::string("\5pixels", 7)),
          Tiff(5, std::string("\x80\x1c\xc5\0\x40", 5)), Tiff(4, std::string("\x26\xa0\x01\0\x10", 5))};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
