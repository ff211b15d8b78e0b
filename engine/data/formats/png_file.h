#ifndef TANDEM_ENGINE_DATA_FORMATS_PNG_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_PNG_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a PNG file (libpng).
absl::StatusOr<Image> ReadPngHeader(absl::string_view file);
absl::StatusOr<Image> DecodePng(absl::string_view file);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_PNG_FILE_H_
