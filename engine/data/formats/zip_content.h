#ifndef TANDEM_ENGINE_DATA_FORMATS_ZIP_CONTENT_H_
#define TANDEM_ENGINE_DATA_FORMATS_ZIP_CONTENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {

// Opens a zip archive as its only file. Names of IsSkippedPath do not count. INVALID_ARGUMENT if the archive
// has no file or several files.
absl::StatusOr<std::unique_ptr<CompressedFile>> OpenZipContent(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_ZIP_CONTENT_H_
