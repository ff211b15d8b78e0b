#ifndef TANDEM_SERVER_AUTH_AUTHENTICATOR_H_
#define TANDEM_SERVER_AUTH_AUTHENTICATOR_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/auth/token_registry.h"

namespace tandem {

// Authenticates a call by its metadata alone. Thread-safe.
class Authenticator {
 public:
  using Metadata = std::pair<absl::string_view, absl::string_view>;

  // `token` is the administrator's token. `users` has all other tokens and must outlive this object; may be
  // null.
  explicit Authenticator(std::string token, const TokenRegistry* users = nullptr)
      : token_(std::move(token)), users_(users) {}

  // `metadata` has lower-case names, and ":path" with the method, as "/tandem.v1.JobService/GetJob". OK for
  // health checks (grpc.health.v1.Health/Check, but not Watch), and if Identify is OK. Otherwise
  // UNAUTHENTICATED with the remedy. The message names no path, because strangers may read it.
  absl::Status Check(absl::Span<const Metadata> metadata) const;

  // Returns the caller if exactly one "authorization" entry holds "Bearer <token>" with a valid token.
  // Otherwise UNAUTHENTICATED with the remedy.
  absl::StatusOr<Caller> Identify(absl::Span<const Metadata> metadata) const;

  // Checks that a caller from Identify may still call. UNAUTHENTICATED as TokenRegistry::CheckStillValid.
  absl::Status CheckStillValid(const Caller& caller) const;

 private:
  const std::string token_;
  const TokenRegistry* const users_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUTHENTICATOR_H_
