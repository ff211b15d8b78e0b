#include "engine/data/formats/jpeg_file.h"

#include <algorithm>
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
#include "engine/base/status_macros.h"
#include "engine/data/formats/exif.h"

namespace tandem {
namespace {

// A progressive image may have any number of scans, and each costs a pass over all its pixels.
constexpr int kMaxScans = 200;

// Rows that are decoded before they are scaled: few enough to stay in the cache.
constexpr int64_t kStripRows = 8;

// libjpeg smooths colours over two columns, but not at the border of the decoded columns. So the columns
// beside the needed columns are decoded, too. Colours of very few columns are not smoothed at all.
constexpr int64_t kMargin = 2;
constexpr int64_t kFewColumns = 8;

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

// Owns libjpeg's memory for a picture, and frees the memory also if an exception passes.
class Decompressor {
 public:
  Decompressor() {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = OnError;
    errors_.manager.emit_message = OnMessage;
    progress_.progress_monitor = OnProgress;
  }
  ~Decompressor() { jpeg_destroy_decompress(&info_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  JpegErrors& errors() { return errors_; }
  jpeg_decompress_struct& info() { return info_; }
  jpeg_progress_mgr& progress() { return progress_; }

 private:
  // Before jpeg_create_decompress all bytes are 0, and the destructor frees nothing.
  JpegErrors errors_ = {};
  jpeg_decompress_struct info_ = {};
  jpeg_progress_mgr progress_ = {};
};

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

// What is read of a file.
struct Output {
  bool header_only = false;
  SampleWriter* writer = nullptr;  // If set, takes the rows of an image that is not turned.
  Image image;  // Without pixels if only the header was read, or if `writer` took the rows.
  int orientation = 1;
  std::vector<uint8_t> inks;  // A row with four channels.
};

// From here to the end of Decode, longjmp may leave each call of libjpeg. So no object here has a destructor,
// and no function of Tandem calls libjpeg while it holds such an object. The callers create `output` and the
// Decompressor.

// Reads the next `count` rows to `to`. The rows are `stride` bytes apart.
void ReadRows(jpeg_decompress_struct& info, int64_t count, int64_t stride, std::vector<uint8_t>& inks,
              uint8_t* to) {
  const bool has_inks = info.num_components == 4;
  for (int64_t done = 0; done < count;) {
    JSAMPROW rows[kStripRows];
    const int64_t wanted = has_inks ? 1 : std::min(count - done, kStripRows);
    for (int64_t i = 0; i < wanted; ++i) rows[i] = has_inks ? inks.data() : to + (done + i) * stride;
    const int64_t read = jpeg_read_scanlines(&info, rows, wanted);
    if (has_inks) {
      uint8_t* const out = to + done * stride;
      for (int64_t x = 0; x < info.output_width; ++x) {
        for (int64_t c = 0; c < 3; ++c) out[x * 3 + c] = WithoutInk(inks[x * 4 + c], inks[x * 4 + 3]);
      }
    }
    done += read;
  }
}

// Passes all rows to the writer, a strip at a time.
void PassRows(jpeg_decompress_struct& info, Output& output) {
  SampleWriter& writer = *output.writer;
  writer.Begin(output.image);
  const int64_t channels = output.image.channels;
  JDIMENSION first = 0;
  // A progressive image is decoded whole: its missing parts are smoothed across columns.
  if (!jpeg_has_multiple_scans(&info)) {
    const int64_t begin = std::max<int64_t>(0, writer.first_column() - kMargin);
    const int64_t end =
        std::min<int64_t>(info.output_width, writer.first_column() + writer.columns() + kMargin);
    JDIMENSION width = end - begin;
    if (width > kFewColumns && width < info.output_width) {
      first = begin;
      jpeg_crop_scanline(&info, &first, &width);
    }
  }
  const int64_t stride = info.output_width * channels;
  uint8_t* const strip = writer.RowMemory(kStripRows * stride);
  while (info.output_scanline < info.output_height) {
    const int64_t rows = std::min<int64_t>(kStripRows, info.output_height - info.output_scanline);
    ReadRows(info, rows, stride, output.inks, strip);
    writer.Add(strip + (writer.first_column() - first) * channels, rows, stride);
  }
  writer.Finish();
}

bool Decode(absl::string_view file, JpegErrors& errors, jpeg_decompress_struct& info, Output& output) {
  if (setjmp(errors.jump) != 0) return false;
  Image& image = output.image;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_save_markers(&info, kExifMarker, 0xFFFF);
  jpeg_read_header(&info, TRUE);
  output.orientation = OrientationOf(info);
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
  if (output.header_only) return true;
  const bool inks = info.num_components == 4;
  info.out_color_space = inks ? JCS_CMYK : image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  if (inks) output.inks.resize(4 * image.width);
  if (output.writer != nullptr && output.orientation == 1) {
    PassRows(info, output);
  } else {
    image.pixels.resize(image.height * image.width * image.channels);
    ReadRows(info, image.height, image.width * image.channels, output.inks, image.pixels.data());
  }
  jpeg_finish_decompress(&info);
  return !errors.truncated;
}

absl::Status DecodeFile(absl::string_view file, Output& output) {
  Decompressor decompressor;
  if (setjmp(decompressor.errors().jump) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot be decoded as JPEG: ", decompressor.errors().message));
  }
  jpeg_create_decompress(&decompressor.info());
  decompressor.info().progress = &decompressor.progress();
  if (Decode(file, decompressor.errors(), decompressor.info(), output)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("cannot be decoded as JPEG: ", decompressor.errors().message));
}

absl::Status ReadJpeg(absl::string_view file, Output& output) {
  TANDEM_RETURN_IF_ERROR(DecodeFile(file, output));
  // The decompressor's memory is free before the picture is copied.
  output.image = TurnImage(std::move(output.image), output.orientation);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Image> ReadJpegHeader(absl::string_view file) {
  Output output;
  output.header_only = true;
  const absl::Status read = ReadJpeg(file, output);
  if (!read.ok()) return read;
  return std::move(output.image);
}

absl::StatusOr<Image> DecodeJpeg(absl::string_view file) {
  Output output;
  const absl::Status read = ReadJpeg(file, output);
  if (!read.ok()) return read;
  return std::move(output.image);
}

absl::Status DecodeJpegRows(absl::string_view file, SampleWriter& writer) {
  Output output;
  output.writer = &writer;
  const absl::Status read = ReadJpeg(file, output);
  if (read.ok() && !output.image.pixels.empty()) writer.Write(output.image);
  return read;
}

}  // namespace tandem
