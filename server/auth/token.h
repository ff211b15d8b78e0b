#ifndef TANDEM_SERVER_AUTH_TOKEN_H_
#define TANDEM_SERVER_AUTH_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Returns the token in the file `path`. Whoever can read the file has full control of the daemon.
//
// NOT_FOUND: no such file exists. FAILED_PRECONDITION: other users may read or write the file, or the content
// is no token (16 to 256 visible ASCII characters). INTERNAL: the file cannot be read.
absl::StatusOr<std::string> LoadToken(const std::string& path);

// As LoadToken, but creates a missing file with mode 0600 and 32 random bytes as URL-safe Base64 (43
// characters), plus a line end. INTERNAL: the file cannot be read or written. The caller must hold the lock
// on the state folder.
absl::StatusOr<std::string> LoadOrCreateToken(const std::string& path);

// Returns 32 random bytes as URL-safe Base64. INTERNAL: the system provides no random bytes.
absl::StatusOr<std::string> RandomToken();

// Returns true if the strings are equal. The time depends only on their lengths, never on their contents.
bool ConstantTimeEqual(absl::string_view a, absl::string_view b);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TOKEN_H_
