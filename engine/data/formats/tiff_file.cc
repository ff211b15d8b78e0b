#include "engine/data/formats/tiff_file.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/data/formats/exif.h"

namespace tandem {
namespace {

// A small file may claim that a strip, a tile or a list has any size.
constexpr tmsize_t kMaxAllocation = tmsize_t{1} << 28;

absl::Status Fault(absl::string_view fault) {
  return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as TIFF: ", fault));
}

// A file in memory, and the first error of its reading.
struct Input {
  absl::string_view file;
  uint64_t at = 0;
  char message[512] = {};
};

Input& InputOf(thandle_t handle) { return *static_cast<Input*>(handle); }

tmsize_t OnRead(thandle_t handle, void* data, tmsize_t size) {
  Input& input = InputOf(handle);
  if (size <= 0 || input.at >= input.file.size()) return 0;
  const auto count = std::min(static_cast<uint64_t>(size), input.file.size() - input.at);
  std::memcpy(data, input.file.data() + input.at, count);
  input.at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t OnWrite(thandle_t /*handle*/, void* /*data*/, tmsize_t /*size*/) { return 0; }

toff_t OnSeek(thandle_t handle, toff_t offset, int whence) {
  Input& input = InputOf(handle);
  const uint64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? input.at : input.file.size();
  return input.at = from + offset;
}

int OnClose(thandle_t /*handle*/) { return 0; }

toff_t OnSize(thandle_t handle) { return InputOf(handle).file.size(); }

int OnError(TIFF* /*tiff*/, void* input, const char* /*module*/, const char* format, va_list arguments) {
  char(&message)[512] = static_cast<Input*>(input)->message;
  if (message[0] == '\0') std::vsnprintf(message, sizeof message, format, arguments);
  return 1;
}

int OnWarning(TIFF* /*tiff*/, void* /*input*/, const char* /*module*/, const char* /*format*/,
              va_list /*arguments*/) {
  return 1;
}

std::unique_ptr<TIFF, void (*)(TIFF*)> Open(Input& input) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), OnError, &input);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), OnWarning, &input);
  // "m": libtiff reads by the functions and maps no memory.
  return {TIFFClientOpenExt("picture", "rm", &input, OnRead, OnWrite, OnSeek, OnClose, OnSize, nullptr,
                            nullptr, options.get()),
          TIFFClose};
}

// Returns whether the decoder of this compression bounds its memory and its time.
bool IsKnownCompression(uint16_t compression) {
  switch (compression) {
    case COMPRESSION_NONE:
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTRLEW:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZW:
    case COMPRESSION_JPEG:
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE:
    case COMPRESSION_PACKBITS:
      return true;
    default:
      return false;
  }
}

// Returns whether a page has one channel, or a palette of grey.
bool IsGrey(TIFF* tiff) {
  uint16_t photometric = 0, samples = 1, bits = 1, extra = 0;
  uint16_t* types = nullptr;
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_BITSPERSAMPLE, &bits);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &types);
  if (photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE) {
    return samples - std::min(samples, extra) <= 1;
  }
  if (photometric != PHOTOMETRIC_PALETTE || bits > 8) return false;
  uint16_t *red = nullptr, *green = nullptr, *blue = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &red, &green, &blue) == 0) return false;
  const size_t colours = size_t{1} << bits;
  return std::equal(red, red + colours, green) && std::equal(red, red + colours, blue);
}

// libtiff multiplies colours by a transparency that is not associated with them. Such a transparency is
// declared as associated, so that the colours stay.
void KeepColours(TIFF* tiff) {
  uint16_t extra = 0;
  uint16_t* types = nullptr;
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &extra, &types) == 0 || extra == 0) return;
  std::vector<uint16_t> changed(types, types + extra);
  if (changed[0] != EXTRASAMPLE_UNASSALPHA) return;
  changed[0] = EXTRASAMPLE_ASSOCALPHA;
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, extra, changed.data());
}

// Writes pixels of 16-bit grey as libtiff's own routine, but rounds to the nearest of 8 bits, as for PNG.
void PutGrey16(TIFFRGBAImage* reader, uint32_t* to, uint32_t /*x*/, uint32_t /*y*/, uint32_t width,
               uint32_t height, int32_t from_skew, int32_t to_skew, unsigned char* from) {
  const size_t pixel_bytes = 2 * size_t{reader->samplesperpixel};
  for (uint32_t row = 0; row < height; ++row, to += to_skew, from += from_skew * pixel_bytes) {
    for (uint32_t column = 0; column < width; ++column, from += pixel_bytes) {
      uint16_t value = 0;
      std::memcpy(&value, from, sizeof value);
      *to++ = reader->BWmap[(value + 128) / 257][0];
    }
  }
}

// Reads all pixels of a page, from the top left.
bool ReadPixels(TIFF* tiff, std::vector<uint32_t>& raster) {
  char why[1024] = {};
  TIFFRGBAImage reader;
  if (TIFFRGBAImageBegin(&reader, tiff, /*stop=*/1, why) == 0) return false;
  reader.req_orientation = ORIENTATION_TOPLEFT;
  const bool is_grey =
      reader.photometric == PHOTOMETRIC_MINISBLACK || reader.photometric == PHOTOMETRIC_MINISWHITE;
  if (is_grey && reader.isContig != 0 && reader.bitspersample == 16) reader.put.contig = PutGrey16;
  const bool is_read = TIFFRGBAImageGet(&reader, raster.data(), reader.width, reader.height) != 0;
  TIFFRGBAImageEnd(&reader);
  return is_read;
}

absl::StatusOr<Image> ReadTiff(absl::string_view file, bool header_only) {
  Input input{.file = file};
  const auto fault = [&](absl::string_view otherwise) {
    return Fault(input.message[0] != '\0' ? absl::string_view(input.message) : otherwise);
  };
  const std::unique_ptr<TIFF, void (*)(TIFF*)> tiff = Open(input);
  if (tiff == nullptr) return fault("its header is damaged or truncated");
  uint32_t width = 0, height = 0;
  uint16_t compression = COMPRESSION_NONE, orientation = ORIENTATION_TOPLEFT;
  if (TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width) == 0 ||
      TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height) == 0 || width == 0 || height == 0) {
    return fault("it has no size");
  }
  Image image{.channels = IsGrey(tiff.get()) ? 1 : 3, .height = height, .width = width, .pixels = {}};
  // Each side is checked, so that the product does not overflow.
  if (width > kMaxImagePixels || height > kMaxImagePixels || image.height * image.width > kMaxImagePixels) {
    return Fault(absl::StrCat("it has ", width, " x ", height, " pixels, more than can be read"));
  }
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  if (!IsKnownCompression(compression)) {
    return Fault(absl::StrCat("its compression ", compression,
                              " is not known; save it with LZW, deflate or no compression"));
  }
  char why[1024] = {};
  if (TIFFRGBAImageOK(tiff.get(), why) == 0) {
    return Fault(absl::StrCat(why, "; save it with 8 or 16 bits a channel, grey or of red, green and blue"));
  }
  if (!header_only) {
    KeepColours(tiff.get());
    // The turn follows below, by the same code for all formats.
    TIFFSetField(tiff.get(), TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
    const int64_t area = image.height * image.width;
    std::vector<uint32_t> raster(area);
    if (!ReadPixels(tiff.get(), raster)) {
      return fault("the file is damaged or truncated");
    }
    image.pixels.resize(image.channels * area);
    uint8_t* to = image.pixels.data();
    for (const uint32_t pixel : raster) {
      for (int64_t c = 0; c < image.channels; ++c) *to++ = static_cast<uint8_t>(pixel >> (8 * c));
    }
  }
  return TurnImage(std::move(image), orientation);
}

}  // namespace

absl::StatusOr<Image> ReadTiffHeader(absl::string_view file) { return ReadTiff(file, true); }

absl::StatusOr<Image> DecodeTiff(absl::string_view file) { return ReadTiff(file, false); }

}  // namespace tandem
