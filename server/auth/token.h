#ifndef TANDEM_SERVER_AUTH_TOKEN_H_
#define TANDEM_SERVER_AUTH_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// The token in the file `path`. Where there is no such file, makes one with mode 0600 that holds 32 random
// bytes as URL-safe Base64 (43 characters) and a line end. Whoever can read the file may do everything with
// the daemon. FAILED_PRECONDITION: others than its owner may read or write the file, or what it holds is no
// token (16 to 256 characters of visible ASCII). INTERNAL: it cannot be read or written. Not safe to call
// from two processes at once: the lock on the state folder is to be held.
absl::StatusOr<std::string> LoadOrCreateToken(const std::string& path);

// 32 random bytes as URL-safe Base64. INTERNAL: the system gives none.
absl::StatusOr<std::string> RandomToken();

// Whether both are the same. The time that it takes depends on the lengths alone, never on the contents.
bool ConstantTimeEqual(absl::string_view a, absl::string_view b);

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_TOKEN_H_
