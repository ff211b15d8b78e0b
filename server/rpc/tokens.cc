#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"

namespace tandem::rpc {

void CreateToken(const Caller& /*caller*/, const v1::CreateTokenRequest& request,
                 Reply<v1::CreateTokenResponse> reply, TokenRegistry* tokens, Scheduler* scheduler) {
  tokens->Create(request.token(),
                 [scheduler, reply = std::move(reply)](absl::StatusOr<TokenRegistry::Made> made) mutable {
                   if (!made.ok()) return reply(made.status());
                   scheduler->OnQuotasChanged();
                   v1::CreateTokenResponse response;
                   *response.mutable_token() = std::move(made->token);
                   response.set_secret(std::move(made->secret));
                   reply(std::move(response));
                 });
}

void ListTokens(const Caller& /*caller*/, const v1::ListTokensRequest& request,
                Reply<v1::ListTokensResponse> reply, TokenRegistry* tokens) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  v1::ListTokensResponse response;
  response.set_next_page_token(AddPage(tokens->List(), 0, *page, response.mutable_tokens()));
  reply(std::move(response));
}

void RevokeToken(const Caller& /*caller*/, const v1::RevokeTokenRequest& request, Reply<v1::Token> reply,
                 TokenRegistry* tokens, Scheduler* scheduler) {
  absl::string_view user = request.name();
  if (!absl::ConsumePrefix(&user, "tokens/") || user.empty()) {
    reply(FieldError("name", absl::StrCat("is '", absl::CHexEscape(request.name().substr(0, 80)),
                                          "', which is not the name of a token; write \"tokens/<user>\"")));
    return;
  }
  tokens->Revoke(std::string(user),
                 [scheduler, reply = std::move(reply)](absl::StatusOr<v1::Token> revoked) mutable {
                   // The token's own quota ends with the token.
                   if (revoked.ok()) scheduler->OnQuotasChanged();
                   reply(std::move(revoked));
                 });
}

}  // namespace tandem::rpc
