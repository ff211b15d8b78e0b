// WebP files.

#include <string>
#include <vector>

#include <webp/encode.h>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/picture_check.h"

namespace tandem {

namespace {

// Returns a file of 5 x 3 pixels.
std::string Webp(bool lossless) {
  const std::string pixels(5 * 3 * 4, '\x5a');
  const auto* from = reinterpret_cast<const uint8_t*>(pixels.data());
  uint8_t* bytes = nullptr;
  const size_t size = lossless ? WebPEncodeLosslessRGBA(from, 5, 3, 20, &bytes)
                               : WebPEncodeRGBA(from, 5, 3, 20, /*quality_factor=*/70, &bytes);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

}  // namespace

std::vector<std::string> Seeds() { return {Webp(false), Webp(true)}; }

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
