#include "server/auth/authenticator.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/auth/token.h"

namespace tandem {
namespace {

constexpr absl::string_view kHealthPrefix = "/grpc.health.v1.Health/";
constexpr absl::string_view kScheme = "bearer ";

}  // namespace

absl::Status Authenticator::Check(absl::Span<const Metadata> metadata) const {
  absl::string_view authorization;
  int authorizations = 0;
  for (const auto& [name, value] : metadata) {
    if (name == ":path" && absl::StartsWith(value, kHealthPrefix)) return absl::OkStatus();
    if (name == "authorization") {
      authorization = value;
      ++authorizations;
    }
  }
  if (authorizations == 0) {
    return absl::UnauthenticatedError(absl::StrCat(
        "this call carries no token; send the metadata 'authorization: Bearer <token>' with the content "
        "of the daemon's token file ",
        token_file_));
  }
  // RFC 7235: the scheme is read without regard to case.
  if (authorizations > 1 || !absl::StartsWithIgnoreCase(authorization, kScheme)) {
    return absl::UnauthenticatedError("the metadata 'authorization' must be given once, as 'Bearer <token>'");
  }
  if (!ConstantTimeEqual(authorization.substr(kScheme.size()), token_)) {
    return absl::UnauthenticatedError(absl::StrCat("the token is not this daemon's; its token file is ",
                                                   token_file_, " on the daemon's machine"));
  }
  return absl::OkStatus();
}

}  // namespace tandem
