#include "engine/data/formats/image_file.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/data/formats/bmp_file.h"
#include "engine/data/formats/gif_file.h"
#include "engine/data/formats/jpeg_file.h"
#include "engine/data/formats/png_file.h"
#include "engine/data/formats/sample_writer.h"
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
  // Null if the format is only decoded whole.
  absl::Status (*decode_rows)(absl::string_view file, SampleWriter& writer) = nullptr;
};

// Returns the reader for a file's content.
absl::StatusOr<Reader> ReaderOf(absl::string_view file) {
  if (!IsPictureContent(file)) return Unknown(file);
  if (absl::StartsWith(file, kJpegMagic)) return Reader{ReadJpegHeader, DecodeJpeg, DecodeJpegRows};
  if (absl::StartsWith(file, kPngMagic)) return Reader{ReadPngHeader, DecodePng};
  if (absl::StartsWith(file, "RIFF")) return Reader{ReadWebpHeader, DecodeWebp};
  if (absl::StartsWith(file, "GIF")) return Reader{ReadGifHeader, DecodeGif};
  if (absl::StartsWith(file, "BM")) return Reader{ReadBmpHeader, DecodeBmp};
  return Reader{ReadTiffHeader, DecodeTiff};
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

absl::Status DecodeSample(absl::string_view file, const PictureForm& form, uint8_t* to) {
  const absl::StatusOr<Reader> reader = ReaderOf(file);
  if (!reader.ok()) return reader.status();
  thread_local SampleWriter writer;
  writer.Reset(form, to);
  absl::Status status;
  if (reader->decode_rows != nullptr) {
    status = reader->decode_rows(file, writer);
  } else {
    const absl::StatusOr<Image> image = reader->decode(file);
    status = image.status();
    if (image.ok()) writer.Write(*image);
  }
  writer.Trim();
  return status;
}

void WriteSample(const Image& image, const PictureForm& form, uint8_t* to) {
  SampleWriter writer;
  writer.Reset(form, to);
  writer.Write(image);
}

}  // namespace tandem
