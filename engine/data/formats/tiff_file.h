#ifndef TANDEM_ENGINE_DATA_FORMATS_TIFF_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_TIFF_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a TIFF file (libtiff): its first page, of 1 to 16 bits a channel.
// INVALID_ARGUMENT for floats, and for compression other than LZW, deflate, PackBits, JPEG and CCITT's fax
// codes.
absl::StatusOr<Image> ReadTiffHeader(absl::string_view file);
absl::StatusOr<Image> DecodeTiff(absl::string_view file);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_TIFF_FILE_H_
