#ifndef TANDEM_SERVER_AUTH_AUTHENTICATOR_H_
#define TANDEM_SERVER_AUTH_AUTHENTICATOR_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tandem {

// Decides from a call's metadata alone whether it may go on. Thread-safe.
class Authenticator {
 public:
  using Metadata = std::pair<absl::string_view, absl::string_view>;

  // `token_file` is what an answer tells the caller to look at.
  Authenticator(std::string token, std::string token_file)
      : token_(std::move(token)), token_file_(std::move(token_file)) {}

  // `metadata` holds names in lower case and ":path", the method as "/tandem.v1.JobService/GetJob".
  // OK for health checks (grpc.health.v1.Health) and where exactly one "authorization" entry holds
  // "Bearer <token>"; else UNAUTHENTICATED with what to do.
  absl::Status Check(absl::Span<const Metadata> metadata) const;

 private:
  const std::string token_;
  const std::string token_file_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUTHENTICATOR_H_
