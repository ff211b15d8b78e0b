// GIF files.

#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

namespace tandem {

std::vector<std::string> Seeds() {
  // A pixel of two colours, plain, and after an extension with a transparent colour.
  const std::string screen = std::string("GIF89a\1\0\1\0\x80\0\0", 13) + std::string("\0\0\0\xff\x80\x40", 6);
  const std::string frame = std::string(",\0\0\0\0\1\0\1\0\0\2\2D\1\0;", 16);
  return {screen + frame, screen + std::string("!\xf9\4\1\0\0\1\0", 8) + frame};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
