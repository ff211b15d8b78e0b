#ifndef TANDEM_ENGINE_DATA_FORMATS_ZSTD_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_ZSTD_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {

// Returns whether a file that begins with these bytes is compressed by zstd.
bool IsZstd(absl::string_view begin);

// Opens a file of zstd frames (RFC 8878), one after the other. Takes `fd`, which is at the file's beginning.
// Frames whose window needs more than 128 MiB are refused, as "zstd --long=28" makes them. The stated length
// is unknown.
absl::StatusOr<std::unique_ptr<CompressedFile>> OpenZstd(const std::string& path, int fd);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_ZSTD_FILE_H_
