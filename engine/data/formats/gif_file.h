#ifndef TANDEM_ENGINE_DATA_FORMATS_GIF_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_GIF_FILE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// ReadImageHeader and DecodeImage for a GIF file (giflib): its first frame.
absl::StatusOr<Image> ReadGifHeader(absl::string_view file);
absl::StatusOr<Image> DecodeGif(absl::string_view file);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_GIF_FILE_H_
