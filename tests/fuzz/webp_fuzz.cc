// WebP files.

#include <string>
#include <vector>

#include <webp/encode.h>

#include "engine/data/formats/test_files.h"
#include "engine/data/formats/test_jpeg.h"
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

std::string Chunk(const std::string& name, const std::string& data) {
  return name + Little(data.size(), 4) + data + std::string(data.size() % 2, '\0');
}

// Returns the extended form of a file of 5 x 3 pixels with these chunks. `flags` tell of the chunks.
std::string Extended(int flags, const std::string& chunks) {
  const std::string all =
      "WEBP" + Chunk("VP8X", Little(flags, 4) + Little(5 - 1, 3) + Little(3 - 1, 3)) + chunks;
  return "RIFF" + Little(all.size(), 4) + all;
}

// Returns the chunk of the pixels of a plain file.
std::string PixelsOf(const std::string& file) { return file.substr(12); }

// Returns a file with EXIF data behind the pixels.
std::string Turned(bool lossless) {
  constexpr int kExif = 8;
  return Extended(kExif, PixelsOf(Webp(lossless)) + Chunk("EXIF", OrientationExif(6)));
}

// Returns a file with a single frame.
std::string Animated() {
  constexpr int kAnimation = 2;
  // The place, the size, the duration and the flags of the frame.
  const std::string frame =
      Little(0, 6) + Little(5 - 1, 3) + Little(3 - 1, 3) + Little(100, 3) + Little(0, 1);
  return Extended(kAnimation, Chunk("ANIM", Little(0, 6)) + Chunk("ANMF", frame + PixelsOf(Webp(true))));
}

}  // namespace

std::vector<std::string> Seeds() {
  return {Webp(false), Webp(true), Turned(false), Turned(true), Animated()};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tandem::CheckPicture(data, size);
  return 0;
}
