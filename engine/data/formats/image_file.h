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

// A picture of bytes, as samples are: planes one behind the other, [channels, height, width].
struct Image {
  int64_t channels = 0;  // 1 for grey, 3 for red, green and blue.
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

// The most pixels of an image that is read: a small file may announce any number.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 26;

// What a file's header announces; `pixels` stays empty. Errors as DecodeImage's.
absl::StatusOr<Image> ReadImageHeader(absl::string_view file);

// Decodes a whole JPEG or PNG file, told by its first bytes: grey images, those with a palette among them
// where it is grey, have one channel, all others three; transparency is dropped, 16 bits become 8.
// INVALID_ARGUMENT, without a path ("is truncated", "is neither JPEG nor PNG"), where it cannot be decoded
// whole.
absl::StatusOr<Image> DecodeImage(absl::string_view file);

// Grey from colours by 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601); colours from grey by repeating
// it. `channels` is 1 or 3.
Image ConvertImage(Image image, int64_t channels);

// Brings an image to `height` and `width` as `resize` says; see ImageResize.
Image ResizeImage(const Image& image, int64_t height, int64_t width, v1::ImageResize resize);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_IMAGE_FILE_H_
