#ifndef TANDEM_ENGINE_DATA_FORMATS_GZIP_FILE_H_
#define TANDEM_ENGINE_DATA_FORMATS_GZIP_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/data/formats/compressed_file.h"

namespace tandem {

// Returns whether a file that begins with these bytes is compressed by gzip.
bool IsGzip(absl::string_view begin);

// Opens a file of gzip members, one after the other (RFC 1952). Takes `fd`, which is at the file's beginning.
// `stated` is the stated length, or -1. Zeros may follow the last member. Other bytes there are an error,
// unlike in zlib's gzread: they may be a damaged member, so that samples would be missing.
absl::StatusOr<std::unique_ptr<CompressedFile>> OpenGzip(const std::string& path, int fd, int64_t stated);

}  // namespace tandem

#endif  // TANDEM_ENGINE_DATA_FORMATS_GZIP_FILE_H_
