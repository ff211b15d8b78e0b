#ifndef TANDEM_ENGINE_DATA_FORMATS_JPEG_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_JPEG_FILE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/sample_writer.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a JPEG file (libjpeg). CMYK and YCCK become red, green and blue. Their
// inks are inverted, as Adobe's programs write them and as Pillow reads them.
absl::StatusOr<Image> ReadJpegHeader(absl::string_view file);
absl::StatusOr<Image> DecodeJpeg(absl::string_view file);

// Passes the whole image to `writer`, which has been reset. The pixels are those of DecodeJpeg. Decodes only
// the needed columns if the image has a single scan and is not turned. Errors as DecodeImage; then the writer
// has an unfinished image.
absl::Status DecodeJpegRows(absl::string_view file, SampleWriter& writer);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_JPEG_FILE_H_
