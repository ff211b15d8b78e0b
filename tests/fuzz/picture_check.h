#ifndef TANDEM_TESTS_FUZZ_PICTURE_CHECK_H_
#define TANDEM_TESTS_FUZZ_PICTURE_CHECK_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// Decodes a picture. Aborts if the image and its header differ.
inline void CheckPicture(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = ReadImageHeader(file);
  // Large images would take the time of many small images.
  if (header.ok() && header->height * header->width > (1 << 22)) return;
  const auto image = DecodeImage(file);
  if (!image.ok()) return;
  if (!header.ok() || header->height != image->height || header->width != image->width ||
      header->channels != image->channels ||
      static_cast<int64_t>(image->pixels.size()) != image->channels * image->height * image->width) {
    __builtin_trap();
  }
}

}  // namespace tandem

#endif  // TANDEM_TESTS_FUZZ_PICTURE_CHECK_H_
