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
  // Only in a header of a file's beginning: the rest of the file may swap height and width.
  bool may_turn = false;
};

// The largest number of pixels of an image. A small file may claim any number.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// Returns the claims of a file's header. `pixels` is empty. `file` may be the beginning of a file. The header
// of a PNG file then has may_turn, unless the picture is square or its EXIF data are found. Errors as
// DecodeImage, also if more of the file is needed.
absl::StatusOr<Image> ReadImageHeader(absl::string_view file);

// Decodes a whole JPEG, PNG, WebP, BMP, TIFF or GIF file. The first bytes tell the format. Grey images have a
// single channel, also images with a grey palette. All others have three channels. Transparency is dropped,
// and 16 bits become 8. The image is turned as the file's EXIF data say. INVALID_ARGUMENT without a path ("is
// truncated", "is no picture that can be read") if the file cannot be decoded whole.
absl::StatusOr<Image> DecodeImage(absl::string_view file);

// How a picture becomes a sample of planes, [channels, height, width].
struct PictureForm {
  int64_t channels = 0;  // 1 or 3.
  int64_t height = 0;
  int64_t width = 0;
  v1::ImageResize resize = v1::IMAGE_RESIZE_STRETCH;
};

// Decodes a file as DecodeImage, and writes the sample to `to`. Converts to the wanted channels: grey is
// 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601), and colours repeat grey. Then resizes, see
// v1::ImageResize. Holds a few rows of a JPEG image that has one scan and is not turned, and all other images
// whole. Each thread keeps the memory of these rows. After an error, `to` has no meaning. Errors as
// DecodeImage.
absl::Status DecodeSample(absl::string_view file, const PictureForm& form, uint8_t* to);

// Makes a sample from a decoded image, as DecodeSample.
void WriteSample(const Image& image, const PictureForm& form, uint8_t* to);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IMAGE_FILE_H_
