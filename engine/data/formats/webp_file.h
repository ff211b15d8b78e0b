#ifndef TANDEM_ENGINE_DATA_FORMATS_WEBP_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_WEBP_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a WebP file (libwebp). An animation gives its first frame.
absl::StatusOr<Image> ReadWebpHeader(absl::string_view file);
absl::StatusOr<Image> DecodeWebp(absl::string_view file);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_WEBP_FILE_H_
