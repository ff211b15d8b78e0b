#include "engine/data/formats/image_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/data/formats/bmp_file.h"
#include "engine/data/formats/gif_file.h"
#include "engine/data/formats/image_scale.h"
#include "engine/data/formats/jpeg_file.h"
#include "engine/data/formats/png_file.h"
#include "engine/data/formats/tiff_file.h"
#include "engine/data/formats/webp_file.h"
#include "proto/data_folder/data_folder.h"

namespace tandem {
namespace {

constexpr absl::string_view kJpegMagic = "\xFF\xD8\xFF";
constexpr absl::string_view kPngMagic = "\x89PNG\r\n\x1A\n";

// Returns why a file's content is no picture that can be read.
absl::Status Unknown(absl::string_view file) {
  if (file.empty()) return absl::InvalidArgumentError("is empty");
  const absl::string_view brand = file.size() < 12 || file.substr(4, 4) != "ftyp" ? "" : file.substr(8, 4);
  const char* const kind = brand == "avif" || brand == "avis"                                         ? "AVIF"
                           : brand == "heic" || brand == "heix" || brand == "mif1" || brand == "msf1" ? "HEIC"
                           : absl::StartsWith(file, "8BPS") ? "Photoshop"
                           : absl::StartsWith(file, "%PDF") ? "PDF"
                                                            : "";
  if (*kind != '\0') {
    return absl::InvalidArgumentError(
        absl::StrCat("is a ", kind, " file, which cannot be read; save it as JPEG or PNG"));
  }
  return absl::InvalidArgumentError("is no picture that can be read: JPEG, PNG, WebP, BMP, TIFF or GIF");
}

// The functions that read a format.
struct Reader {
  absl::StatusOr<Image> (*read_header)(absl::string_view file);
  absl::StatusOr<Image> (*decode)(absl::string_view file);
};

// Returns the reader for a file's content.
absl::StatusOr<Reader> ReaderOf(absl::string_view file) {
  if (!IsPictureContent(file)) return Unknown(file);
  if (absl::StartsWith(file, kJpegMagic)) return Reader{ReadJpegHeader, DecodeJpeg};
  if (absl::StartsWith(file, kPngMagic)) return Reader{ReadPngHeader, DecodePng};
  if (absl::StartsWith(file, "RIFF")) return Reader{ReadWebpHeader, DecodeWebp};
  if (absl::StartsWith(file, "GIF")) return Reader{ReadGifHeader, DecodeGif};
  if (absl::StartsWith(file, "BM")) return Reader{ReadBmpHeader, DecodeBmp};
  return Reader{ReadTiffHeader, DecodeTiff};
}

// Scales an image and cuts out the needed pixels. Only these take memory: a long thin image would become huge
// if its short side must fit.
Image Scale(Image image, const ScaledSide& vertical, const ScaledSide& horizontal) {
  const int64_t height = vertical.count, width = horizontal.count;
  if (image.height == vertical.scaled && image.width == horizontal.scaled && image.height == height &&
      image.width == width) {
    return image;
  }
  Image result{.channels = image.channels, .height = height, .width = width, .pixels = {}};
  result.pixels.resize(height * width * image.channels);
  ScalePixels(image.pixels.data(), image.channels, vertical, horizontal, result.pixels.data());
  return result;
}

// Centres an image on a black image of the given size, which is at least as large.
Image PutInMiddle(Image image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  Image result{.channels = image.channels, .height = height, .width = width, .pixels = {}};
  result.pixels.resize(height * width * image.channels);
  const int64_t top = (height - image.height) / 2, left = (width - image.width) / 2;
  const int64_t row = image.width * image.channels;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* from = image.pixels.data() + y * row;
    std::copy(from, from + row, result.pixels.data() + ((top + y) * width + left) * image.channels);
  }
  return result;
}

}  // namespace

absl::StatusOr<Image> ReadImageHeader(absl::string_view file) {
  const absl::StatusOr<Reader> reader = ReaderOf(file);
  if (!reader.ok()) return reader.status();
  return reader->read_header(file);
}

absl::StatusOr<Image> DecodeImage(absl::string_view file) {
  const absl::StatusOr<Reader> reader = ReaderOf(file);
  if (!reader.ok()) return reader.status();
  return reader->decode(file);
}

Image ConvertImage(Image image, int64_t channels) {
  if (image.channels == channels) return image;
  const int64_t area = image.height * image.width;
  if (channels == 3) {
    std::vector<uint8_t> pixels(3 * area);
    for (int64_t i = 0; i < area; ++i) std::fill_n(pixels.data() + 3 * i, 3, image.pixels[i]);
    image.pixels = std::move(pixels);
  } else {
    for (int64_t i = 0; i < area; ++i) {
      const uint8_t* colour = image.pixels.data() + 3 * i;
      image.pixels[i] =
          static_cast<uint8_t>((299 * colour[0] + 587 * colour[1] + 114 * colour[2] + 500) / 1000);
    }
    image.pixels.resize(area);
  }
  image.channels = channels;
  return image;
}

Image ResizeImage(Image image, int64_t height, int64_t width, v1::ImageResize resize) {
  const bool crops = resize == v1::IMAGE_RESIZE_CROP, pads = resize == v1::IMAGE_RESIZE_PAD;
  const double by_height = static_cast<double>(height) / static_cast<double>(image.height);
  const double by_width = static_cast<double>(width) / static_cast<double>(image.width);
  const double factor = crops ? std::max(by_height, by_width) : std::min(by_height, by_width);
  const auto side = [&](int64_t size, int64_t wanted) {
    ScaledSide one{.size = size, .scaled = wanted, .first = 0, .count = wanted};
    if (crops || pads) one.scaled = std::max<int64_t>(1, std::llround(static_cast<double>(size) * factor));
    // Rounding may miss the fitting side by a pixel.
    if (crops) one.scaled = std::max(one.scaled, wanted);
    if (pads) one.scaled = std::min(one.scaled, wanted);
    one.count = std::min(one.scaled, wanted);
    one.first = (one.scaled - one.count + 1) / 2;
    return one;
  };
  const ScaledSide vertical = side(image.height, height), horizontal = side(image.width, width);
  return PutInMiddle(Scale(std::move(image), vertical, horizontal), height, width);
}

void CopyPlanes(const Image& image, uint8_t* to) {
  const int64_t area = image.height * image.width;
  for (int64_t c = 0; c < image.channels; ++c) {
    const uint8_t* from = image.pixels.data() + c;
    for (int64_t i = 0; i < area; ++i) *to++ = from[i * image.channels];
  }
}

}  // namespace tandem
