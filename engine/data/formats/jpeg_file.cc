#include "engine/data/formats/jpeg_file.h"

#include <csetjmp>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

// Needs <cstdio> before it, because it does not include it.
#include <jpeglib.h>

#include <jerror.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/data/formats/exif.h"

namespace tandem {
namespace {

// A progressive image may have any number of scans, and each costs a pass over all its pixels.
constexpr int kMaxScans = 200;

// libjpeg reports errors by a call that must not return.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
  bool truncated;
};

JpegErrors* ErrorsOf(j_common_ptr info) { return reinterpret_cast<JpegErrors*>(info->err); }

void OnError(j_common_ptr info) {
  info->err->format_message(info, ErrorsOf(info)->message);
  std::longjmp(ErrorsOf(info)->jump, 1);
}

// Counts warnings. A warning about missing data becomes an error at the end.
void OnMessage(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code != JWRN_JPEG_EOF && code != JWRN_HIT_MARKER && code != JWRN_HUFF_BAD_CODE) return;
  if (!ErrorsOf(info)->truncated) info->err->format_message(info, ErrorsOf(info)->message);
  ErrorsOf(info)->truncated = true;
}

void OnProgress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  std::snprintf(ErrorsOf(info)->message, sizeof ErrorsOf(info)->message, "more than %d scans", kMaxScans);
  std::longjmp(ErrorsOf(info)->jump, 1);
}

constexpr int kExifMarker = JPEG_APP0 + 1;
constexpr absl::string_view kExifName("Exif\0\0", 6);

// Returns the orientation in the file's EXIF data.
int OrientationOf(const jpeg_decompress_struct& info) {
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker != nullptr; marker = marker->next) {
    absl::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == kExifMarker && absl::ConsumePrefix(&data, kExifName)) return ExifOrientation(data);
  }
  return 1;
}

// Returns a colour of a pixel from the inverted inks that a file holds: Pillow's arithmetic.
uint8_t WithoutInk(uint8_t inverted_ink, uint8_t inverted_black) {
  const int product = (255 - inverted_ink) * inverted_black + 128;
  return static_cast<uint8_t>(inverted_black - (((product >> 8) + product) >> 8));
}

// From here to the end of Decode all code is C, because longjmp may leave it. The caller creates `image` and
// `row`.
bool Decode(absl::string_view file, bool header_only, JpegErrors& errors, jpeg_decompress_struct& info,
            Image& image, int& orientation, std::vector<uint8_t>& row) {
  if (setjmp(errors.jump) != 0) return false;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_save_markers(&info, kExifMarker, 0xFFFF);
  jpeg_read_header(&info, TRUE);
  orientation = OrientationOf(info);
  image.height = info.image_height;
  image.width = info.image_width;
  image.channels = info.num_components == 1 ? 1 : 3;
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4) {
    std::snprintf(errors.message, sizeof errors.message,
                  "it has %d colours; only images of 1, 3 or 4 colours can be read", info.num_components);
    return false;
  }
  if (image.height * image.width > kMaxImagePixels) {
    std::snprintf(errors.message, sizeof errors.message, "it has %u x %u pixels, more than can be read",
                  info.image_width, info.image_height);
    return false;
  }
  if (header_only) return true;
  const bool inks = info.num_components == 4;
  info.out_color_space = inks ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  image.pixels.resize(image.height * image.width * image.channels);
  if (inks) row.resize(4 * image.width);
  while (info.output_scanline < info.output_height) {
    uint8_t* const out = image.pixels.data() + info.output_scanline * image.width * image.channels;
    JSAMPROW rows[1] = {inks ? row.data() : out};
    jpeg_read_scanlines(&info, rows, 1);
    if (!inks) continue;
    for (int64_t x = 0; x < image.width; ++x) {
      for (int64_t c = 0; c < 3; ++c) out[x * 3 + c] = WithoutInk(row[x * 4 + c], row[x * 4 + 3]);
    }
  }
  jpeg_finish_decompress(&info);
  return !errors.truncated;
}

absl::StatusOr<Image> ReadJpeg(absl::string_view file, bool header_only) {
  JpegErrors errors = {};
  jpeg_decompress_struct info = {};
  jpeg_progress_mgr progress = {};
  info.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = OnError;
  errors.manager.emit_message = OnMessage;
  progress.progress_monitor = OnProgress;
  Image image;
  int orientation = 1;
  std::vector<uint8_t> row;
  if (setjmp(errors.jump) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as JPEG: ", errors.message));
  }
  jpeg_create_decompress(&info);
  info.progress = &progress;
  const bool decoded = Decode(file, header_only, errors, info, image, orientation, row);
  jpeg_destroy_decompress(&info);
  if (!decoded)
    return absl::InvalidArgumentError(absl::StrCat("cannot be decoded as JPEG: ", errors.message));
  return TurnImage(std::move(image), orientation);
}

}  // namespace

absl::StatusOr<Image> ReadJpegHeader(absl::string_view file) { return ReadJpeg(file, true); }

absl::StatusOr<Image> DecodeJpeg(absl::string_view file) { return ReadJpeg(file, false); }

}  // namespace tandem
