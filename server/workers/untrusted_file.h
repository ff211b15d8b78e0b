#ifndef TANDEM_SERVER_WORKERS_UNTRUSTED_FILE_H_
#define TANDEM_SERVER_WORKERS_UNTRUSTED_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace tandem {

// Reads files of folders in which workers write. A hostile worker may put a link, a pipe or a very large file
// in a file's place. These functions never follow a link and never block.

// Returns the content of a regular file. NOT_FOUND: no such file. DATA_LOSS: it is no regular file, or has
// more than `most` bytes.
absl::StatusOr<std::string> ReadUntrustedFile(const std::string& path, size_t most);

// Returns the last `most` bytes of a regular file, or all if it has fewer. NOT_FOUND: no such file.
// DATA_LOSS: it is no regular file.
absl::StatusOr<std::string> ReadUntrustedTail(const std::string& path, size_t most);

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_UNTRUSTED_FILE_H_
