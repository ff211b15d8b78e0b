#ifndef TANDEM_ENGINE_BASE_FOREIGN_FORMAT_H_
#define TANDEM_ENGINE_BASE_FOREIGN_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

// The bytes of a file's beginning that decide about its format.
inline constexpr size_t kForeignFormatBytes = 4096;

// Returns why a file that begins with `begin` cannot be read as data, and the mend: "is a Parquet file; ...".
// `begin` has kForeignFormatBytes, or the whole file if it is shorter. Returns "" if the bytes are not those
// of a known format that Tandem does not read.
std::string ForeignDataFault(absl::string_view begin);

// As ForeignDataFault, for a file that should be safetensors.
std::string ForeignWeightsFault(absl::string_view begin);

// As ForeignDataFault, for the file at `path`. Returns "" if the file cannot be read or is no regular file.
std::string ForeignFileFault(const std::string& path);

}  // namespace tandem

#endif  // TANDEM_ENGINE_BASE_FOREIGN_FORMAT_H_
