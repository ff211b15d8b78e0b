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

// Decides from a call's metadata alone whether it may go on. Thread-safe.
class Authenticator {
 public:
  using Metadata = std::pair<absl::string_view, absl::string_view>;

  // `token` is the administrator's. `users` has the other tokens, where there are any; it outlives this.
  explicit Authenticator(std::string token, const TokenRegistry* users = nullptr)
      : token_(std::move(token)), users_(users) {}

  // `metadata` holds names in lower case and ":path", the method as "/tandem.v1.JobService/GetJob".
  // OK for health checks (grpc.health.v1.Health/Check, not Watch) and where Identify is; else UNAUTHENTICATED
  // with what to do, which names no path: strangers may read it.
  absl::Status Check(absl::Span<const Metadata> metadata) const;

  // Who calls, where exactly one "authorization" entry holds "Bearer <token>" with a token that there is;
  // else UNAUTHENTICATED with what to do.
  absl::StatusOr<Caller> Identify(absl::Span<const Metadata> metadata) const;

  // Whether a caller whom Identify gave could still call; else UNAUTHENTICATED, as TokenRegistry's.
  absl::Status CheckStillValid(const Caller& caller) const;

 private:
  const std::string token_;
  const TokenRegistry* const users_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_AUTH_AUTHENTICATOR_H_
