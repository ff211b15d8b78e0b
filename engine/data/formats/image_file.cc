#include "engine/data/formats/image_file.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/data/formats/bmp_file.h"
#include "engine/data/formats/gif_file.h"
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

// The old pixels of a line that make up a new pixel.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;  // Add up to 1.
};

// A side of an image that is scaled from `size` to `scaled` pixels. Only `count` pixels from `first` on are
// needed.
struct Side {
  int64_t size = 0;
  int64_t scaled = 0;
  int64_t first = 0;
  int64_t count = 0;
};

// Returns the taps of the needed pixels. If the side shrinks, a new pixel weights the old pixels by the
// covered part. If it grows, the two nearest pixels are weighted by their nearness.
std::vector<Taps> TapsOf(const Side& side) {
  const int64_t size = side.size;
  std::vector<Taps> taps(side.count);
  const double ratio = static_cast<double>(size) / static_cast<double>(side.scaled);
  for (int64_t k = 0; k < side.count; ++k) {
    const int64_t i = side.first + k;
    Taps& one = taps[k];
    if (side.scaled >= size) {
      const double at = std::clamp((static_cast<double>(i) + 0.5) * ratio - 0.5, 0.0, size - 1.0);
      one.first = std::min(static_cast<int64_t>(at), std::max<int64_t>(0, size - 2));
      const auto part = static_cast<float>(at - static_cast<double>(one.first));
      one.weights = {1 - part, part};
      if (size == 1) one.weights = {1};
      continue;
    }
    const double begin = static_cast<double>(i) * ratio, end = begin + ratio;
    one.first = static_cast<int64_t>(begin);
    const int64_t last = std::min(size, static_cast<int64_t>(std::ceil(end - 1e-9)));
    for (int64_t old = one.first; old < last; ++old) {
      const double covered = std::min(end, old + 1.0) - std::max(begin, static_cast<double>(old));
      one.weights.push_back(static_cast<float>(covered / ratio));
    }
  }
  return taps;
}

// Scales an image and cuts out the needed pixels. Only these take memory: a long thin image would become huge
// if its short side must fit.
Image Scale(const Image& image, const Side& vertical, const Side& horizontal) {
  const int64_t height = vertical.count, width = horizontal.count;
  if (image.height == vertical.scaled && image.width == horizontal.scaled && image.height == height &&
      image.width == width) {
    return image;
  }
  const std::vector<Taps> across = TapsOf(horizontal);
  const std::vector<Taps> down = TapsOf(vertical);
  Image result{.channels = image.channels, .height = height, .width = width, .pixels = {}};
  result.pixels.resize(image.channels * height * width);
  std::vector<float> narrow(image.height * width);
  for (int64_t c = 0; c < image.channels; ++c) {
    const uint8_t* plane = image.pixels.data() + c * image.height * image.width;
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        float sum = 0;
        const uint8_t* from = plane + y * image.width + across[x].first;
        for (size_t k = 0; k < across[x].weights.size(); ++k) sum += across[x].weights[k] * from[k];
        narrow[y * width + x] = sum;
      }
    }
    uint8_t* out = result.pixels.data() + c * height * width;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        float sum = 0;
        for (size_t k = 0; k < down[y].weights.size(); ++k) {
          sum += down[y].weights[k] * narrow[(down[y].first + static_cast<int64_t>(k)) * width + x];
        }
        out[y * width + x] = static_cast<uint8_t>(std::clamp(sum, 0.0F, 255.0F) + 0.5F);
      }
    }
  }
  return result;
}

// Centres an image on a black image of the given size, which is at least as large.
Image PutInMiddle(const Image& image, int64_t height, int64_t width) {
  if (image.height == height && image.width == width) return image;
  Image result{.channels = image.channels, .height = height, .width = width, .pixels = {}};
  result.pixels.resize(image.channels * height * width);
  const int64_t top = (height - image.height) / 2, left = (width - image.width) / 2;
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t y = 0; y < image.height; ++y) {
      const uint8_t* from = image.pixels.data() + (c * image.height + y) * image.width;
      std::copy(from, from + image.width, result.pixels.data() + (c * height + y + top) * width + left);
    }
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
    std::vector<uint8_t> pixels;
    pixels.reserve(3 * area);
    for (int c = 0; c < 3; ++c) pixels.insert(pixels.end(), image.pixels.begin(), image.pixels.end());
    image.pixels = std::move(pixels);
  } else {
    for (int64_t i = 0; i < area; ++i) {
      const int grey =
          299 * image.pixels[i] + 587 * image.pixels[area + i] + 114 * image.pixels[2 * area + i];
      image.pixels[i] = static_cast<uint8_t>((grey + 500) / 1000);
    }
    image.pixels.resize(area);
  }
  image.channels = channels;
  return image;
}

Image ResizeImage(const Image& image, int64_t height, int64_t width, v1::ImageResize resize) {
  const bool crops = resize == v1::IMAGE_RESIZE_CROP, pads = resize == v1::IMAGE_RESIZE_PAD;
  const double by_height = static_cast<double>(height) / static_cast<double>(image.height);
  const double by_width = static_cast<double>(width) / static_cast<double>(image.width);
  const double factor = crops ? std::max(by_height, by_width) : std::min(by_height, by_width);
  const auto side = [&](int64_t size, int64_t wanted) {
    Side one{.size = size, .scaled = wanted, .first = 0, .count = wanted};
    if (crops || pads) one.scaled = std::max<int64_t>(1, std::llround(static_cast<double>(size) * factor));
    // Rounding may miss the fitting side by a pixel.
    if (crops) one.scaled = std::max(one.scaled, wanted);
    if (pads) one.scaled = std::min(one.scaled, wanted);
    one.count = std::min(one.scaled, wanted);
    one.first = (one.scaled - one.count + 1) / 2;
    return one;
  };
  return PutInMiddle(Scale(image, side(image.height, height), side(image.width, width)), height, width);
}

}  // namespace tandem
