#ifndef TANDEM_TESTS_FUZZ_PICTURE_CHECK_H_
#define TANDEM_TESTS_FUZZ_PICTURE_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// Decodes a picture, whole and as a sample. Aborts if the image and its header differ, or if the sample is
// not the sample of the image.
inline void CheckPicture(const uint8_t* data, size_t size) {
  const absl::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = ReadImageHeader(file);
  // Large images would take the time of many small images.
  if (header.ok() && header->height * header->width > (1 << 22)) return;
  const auto image = DecodeImage(file);
  // The middle of a wide picture is needed, so that a JPEG image is decoded in part.
  constexpr PictureForm kForm = {.channels = 3, .height = 7, .width = 5, .resize = v1::IMAGE_RESIZE_CROP};
  std::array<uint8_t, 3 * 7 * 5> sample = {}, expected = {};
  if (DecodeSample(file, kForm, sample.data()).ok() != image.ok()) __builtin_trap();
  if (!image.ok()) return;
  WriteSample(*image, kForm, expected.data());
  if (sample != expected) __builtin_trap();
  if (!header.ok() || header->height != image->height || header->width != image->width ||
      header->channels != image->channels ||
      static_cast<int64_t>(image->pixels.size()) != image->channels * image->height * image->width) {
    __builtin_trap();
  }
}

}  // namespace tandem

#endif  // TANDEM_TESTS_FUZZ_PICTURE_CHECK_H_
