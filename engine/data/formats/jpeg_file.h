#ifndef TANDEM_ENGINE_DATA_FORMATS_JPEG_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_JPEG_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a JPEG file (libjpeg). CMYK and YCCK become red, green and blue. Their
// inks are inverted, as Adobe's programs write them and as Pillow reads them.
absl::StatusOr<Image> ReadJpegHeader(absl::string_view file);
absl::StatusOr<Image> DecodeJpeg(absl::string_view file);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_JPEG_FILE_H_
