#ifndef TANDEM_CLIENT_LIB_FILE_READING_H_
#define TANDEM_CLIENT_LIB_FILE_READING_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tandem::client {

// Returns the whole content of a file, or of standard input if the path is "-". NOT_FOUND, PERMISSION_DENIED
// or FAILED_PRECONDITION if it cannot be read. INVALID_ARGUMENT if it is a folder, or if its path is too long
// or a loop of links. RESOURCE_EXHAUSTED if it has more than `limit` bytes; reading stops there. The message
// names the path.
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, size_t limit);

}  // namespace tandem::client

#endif  // TANDEM_CLIENT_LIB_FILE_READING_H_
