#ifndef TANDEM_ENGINE_DATA_FORMATS_BZIP2_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_BZIP2_FILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {

// Returns whether a file that begins with these bytes is compressed by bzip2.
bool IsBzip2(absl::string_view begin);

// Opens a file of bzip2 streams, one after the other, as pbzip2 makes them. Takes `fd`, which is at the
// file's beginning. The decompressor takes at most 4 MiB. The stated length is unknown.
absl::StatusOr<std::unique_ptr<CompressedFile>> OpenBzip2(const std::string& path, int fd);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_BZIP2_FILE_H_
