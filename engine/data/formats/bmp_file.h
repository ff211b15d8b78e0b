#ifndef TANDEM_ENGINE_DATA_FORMATS_BMP_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_BMP_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a BMP file of Windows or OS/2: 1, 2, 4, 8, 16, 24 or 32 bits a pixel,
// plain or packed by run lengths. Trusts nothing in the file.
absl::StatusOr<Image> ReadBmpHeader(absl::string_view file);
absl::StatusOr<Image> DecodeBmp(absl::string_view file);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_BMP_FILE_H_
