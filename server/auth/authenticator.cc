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
        "this call carries no token; send the metadata 'authorization: Bearer <token>' with the content of "
        "the file 'token' in the daemon's state folder, or with a token that an administrator made for you");
  }
  // RFC 7235: the scheme is case-insensitive.
  if (authorizations > 1 || !absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return absl::UnauthenticatedError("the metadata 'authorization' must be given once, as 'Bearer <token>'");
  }
  const absl::string_view secret = authorization.substr(kScheme.size());
  if (ConstantTimeEqual(secret, token_)) return Caller{kAdminUser, v1::TOKEN_ROLE_ADMIN, 0};
  if (users_ != nullptr) {
    absl::StatusOr<Caller> caller = users_->Identify(secret);
    if (!absl::IsNotFound(caller.status())) return caller;
  }
  return absl::UnauthenticatedError(
      "the token is not this daemon's, or was revoked; its own is in the file 'token' in its state folder, "
      "which it names when it starts");
}

absl::Status Authenticator::CheckStillValid(const Caller& caller) const {
  if (caller.token_number == 0 || users_ == nullptr) return absl::OkStatus();
  return users_->CheckStillValid(caller);
}

}  // namespace tandem
