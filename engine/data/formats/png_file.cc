#include "engine/data/formats/png_file.h"

#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/data/formats/exif.h"

namespace tandem {
namespace {

// Returns the orientation in the first chunk eXIf that is not damaged, or 1 if there is no such chunk.
// Returns nothing if the file ends before this is known. The chunk may follow the pixels (Extensions to the
// PNG 1.2 Specification, Version 1.5.0, 3.7). libpng would find it only after it has read all pixels.
std::optional<int> OrientationOf(absl::string_view file) {
  // A chunk: the data's length, the type, the data, and the checksum of type and data.
  constexpr size_t kSignatureBytes = 8, kTypeBytes = 4, kFrameBytes = 12;
  const auto number = [&file](size_t place) {
    return png_get_uint_32(reinterpret_cast<png_const_bytep>(&file[place]));
  };
  size_t begin = kSignatureBytes;
  while (begin + kFrameBytes <= file.size()) {
    const size_t length = number(begin);
    if (length > file.size() - begin - kFrameBytes) return std::nullopt;
    const absl::string_view body = file.substr(begin + 4, kTypeBytes + length);
    const absl::string_view type = body.substr(0, kTypeBytes);
    if (type == "IEND") return 1;
    begin += kFrameBytes + length;
    if (type != "eXIf") continue;
    const uLong checksum =
        ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()));
    if (checksum == number(begin - 4)) return ExifOrientation(body.substr(kTypeBytes));
  }
  return std::nullopt;
}

// libpng reports errors by a call that must not return.
struct PngErrors {
  std::jmp_buf jump;
  char message[256];
};

void OnError(png_structp png, png_const_charp message) {
  auto* errors = static_cast<PngErrors*>(png_get_error_ptr(png));
  std::strncpy(errors->message, message, sizeof errors->message - 1);
  std::longjmp(errors->jump, 1);
}

void OnWarning(png_structp /*png*/, png_const_charp /*message*/) {}

struct Input {
  absl::string_view left;
};

void OnRead(png_structp png, png_bytep data, size_t size) {
  auto* input = static_cast<Input*>(png_get_io_ptr(png));
  if (input->left.size() < size) png_error(png, "the file is truncated");
  std::memcpy(data, input->left.data(), size);
  input->left.remove_prefix(size);
}

// From here to the end of Decode all code is C, because longjmp may leave it. The caller creates all objects
// with destructors.
bool Decode(bool header_only, PngErrors& errors, png_structp png, png_infop info, Image& image,
            std::vector<png_bytep>& rows) {
  if (setjmp(errors.jump) != 0) return false;
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_set_chunk_malloc_max(png, 1 << 23);
  // A small file may hold thousands of texts and colour profiles. Skip all of them.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  const int64_t height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  if (height * width > kMaxImagePixels) {
    std::snprintf(errors.message, sizeof errors.message, "it has %lld x %lld pixels, more than can be read",
                  static_cast<long long>(width), static_cast<long long>(height));
    return false;
  }
  const int type = png_get_color_type(png, info);
  bool grey = (type & PNG_COLOR_MASK_COLOR) == 0;
  if (type == PNG_COLOR_TYPE_PALETTE) {
    png_colorp palette = nullptr;
    int colours = 0;
    png_get_PLTE(png, info, &palette, &colours);
    grey = std::all_of(palette, palette + colours,
                       [](const png_color& c) { return c.red == c.green && c.green == c.blue; });
  }
  image.height = height;
  image.width = width;
  image.channels = grey ? 1 : 3;
  if (header_only) return true;
  png_set_expand(png);  // Palettes become colours, few bits become eight, a transparent colour becomes alpha.
  png_set_scale_16(png);
  png_set_strip_alpha(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const int64_t stride = png_get_rowbytes(png, info), channels = png_get_channels(png, info);
  image.pixels.resize(height * stride);
  rows.resize(height);
  for (int64_t y = 0; y < height; ++y) rows[y] = image.pixels.data() + y * stride;
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  if (channels == image.channels) return true;
  // A grey palette has become three equal colours.
  for (int64_t i = 0; i < height * width; ++i) image.pixels[i] = image.pixels[i * channels];
  image.pixels.resize(height * width);
  return true;
}

absl::StatusOr<Image> ReadPng(absl::string_view file, bool header_only) {
  PngErrors errors = {};
  Input input{file};
  Image image;
  std::vector<png_bytep> rows;
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &errors, OnError, OnWarning);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);
  if (info == nullptr) {
    png_destroy_read_struct(&png, nullptr, nullptr);
    return absl::ResourceExhaustedError("no memory to decode an image");
  }
  png_set_read_fn(png, &input, OnRead);
  const bool decoded = Decode(header_only, errors, png, info, image, rows);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!decoded) return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as PNG: ", errors.message));
  const std::optional<int> orientation = OrientationOf(file);
  image.may_turn = !orientation.has_value() && image.height != image.width;
  return TurnImage(std::move(image), orientation.value_or(1));
}

}  // namespace

absl::StatusOr<Image> ReadPngHeader(absl::string_view file) { return ReadPng(file, true); }

absl::StatusOr<Image> DecodePng(absl::string_view file) { return ReadPng(file, false); }

}  // namespace tandem
