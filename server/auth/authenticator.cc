#include "server/auth/authenticator.h"

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "server/auth/token.h"

namespace tandem {
namespace {

// Health/Watch is not open: strangers could open streams without any limit.
constexpr absl::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
constexpr absl::string_view kScheme = "bearer ";

}  // namespace

absl::Status Authenticator::Check(absl::Span<const Metadata> metadata) const {
  for (const auto& [name, value] : metadata) {
    if (name == ":path" && value == kHealthCheck) return absl::OkStatus();
  }
  return Identify(metadata).status();
}

absl::StatusOr<Caller> Authenticator::Identify(absl::Span<const Metadata> metadata) const {
  absl::string_view authorization;
  int authorizations = 0;
  for (const auto& [name, value] : metadata) {
    if (name == "authorization") {
      authorization = value;
      ++authorizations;
    }
  }
  if (authorizations == 0) {
    return absl::UnauthenticatedError(
        "cannot identify the caller: the call has no token; send the metadata 'authorization: Bearer "
        "<token>' with the content of the file 'token' in the daemon's state folder, or a token from an "
        "administrator");
  }
  // RFC 7235: the scheme is case-insensitive.
  if (authorizations > 1 || !absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return absl::UnauthenticatedError(
        "cannot identify the caller: the metadata 'authorization' is not one 'Bearer <token>'; send it once");
  }
  const absl::string_view secret = authorization.substr(kScheme.size());
  if (ConstantTimeEqual(secret, token_)) return Caller{kAdminUser, v1::TOKEN_ROLE_ADMIN, 0};
  if (users_ != nullptr) {
    absl::StatusOr<Caller> caller = users_->Identify(secret);
    if (!absl::IsNotFound(caller.status())) return caller;
  }
  return absl::UnauthenticatedError(
      "cannot identify the caller: the daemon does not know this token, or it was revoked; the daemon's own "
      "token is in the file 'token' in the daemon's state folder");
}

absl::Status Authenticator::CheckStillValid(const Caller& caller) const {
  if (caller.token_number == 0 || users_ == nullptr) return absl::OkStatus();
  return users_->CheckStillValid(caller);
}

}  // namespace tandem
