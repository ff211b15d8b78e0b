#ifndef TANDEM_ENGINE_DATA_FORMATS_IMAGE_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_IMAGE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/dataset.pb.h"

namespace tandem {

// A picture of bytes, [height, width, channels], as picture files have it.
struct Image {
  int64_t channels = 0;  // 1 for grey, 3 for red, green and blue.
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

// The largest number of pixels of an image. A small file may claim any number.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// Returns the claims of a file's header. `pixels` is empty. Errors as DecodeImage.
absl::StatusOr<Image> ReadImageHeader(absl::string_view file);

// Decodes a whole JPEG, PNG, WebP, BMP, TIFF or GIF file. The first bytes tell the format. Grey images have a
// single channel, also images with a grey palette. All others have three channels. Transparency is dropped,
// and 16 bits become 8. The image is turned as the file's EXIF data say. INVALID_ARGUMENT without a path ("is
// truncated", "is no picture that can be read") if the file cannot be decoded whole.
absl::StatusOr<Image> DecodeImage(absl::string_view file);

// Converts an image to `channels` channels, 1 or 3. Grey is 0.299 red + 0.587 green + 0.114 blue (ITU-R
// BT.601). Colours repeat grey.
Image ConvertImage(Image image, int64_t channels);

// Resizes an image to `height` and `width` as `resize` says. See ImageResize.
Image ResizeImage(Image image, int64_t height, int64_t width, v1::ImageResize resize);

// Writes the image as a sample, planes one after the other: `to` is [channels, height, width].
void CopyPlanes(const Image& image, uint8_t* to);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IMAGE_FILE_H_
