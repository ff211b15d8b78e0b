#ifndef TANDEM_CLIENT_LIB_FILE_READING_H_
#define TANDEM_CLIENT_LIB_FILE_READING_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tandem::client {

// The whole content of a file, or of standard input where the path is "-". NOT_FOUND, PERMISSION_DENIED or
// UNAVAILABLE where it cannot be read, INVALID_ARGUMENT where it is a folder, RESOURCE_EXHAUSTED where it has
// more than `limit` bytes (no more are read); the message names the path.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_FILE_READING_H_
