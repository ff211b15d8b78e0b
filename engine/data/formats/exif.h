#ifndef TANDEM_ENGINE_DATA_FORMATS_EXIF_H_
#define TANDEM_ENGINE_DATA_FORMATS_EXIF_H_

#include "absl/strings/string_view.h"
#include "engine/data/formats/image_file.h"

namespace tandem {

// Returns the orientation in EXIF data, 1 to 8, or 1 if the data have none. The data begin with the byte
// order, "II" or "MM" (JEITA CP-3451, 4.6). Trusts nothing in the data.
int ExifOrientation(absl::string_view exif);

// Turns an image as its orientation says, so that its top is above. A header without pixels is turned, too.
// Returns the image unchanged if the orientation is not 2 to 8.
Image TurnImage(Image image, int orientation);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_EXIF_H_
