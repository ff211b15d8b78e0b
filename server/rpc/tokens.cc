#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "server/rpc/handlers.h"
#include "server/rpc/pages.h"

namespace tandem::rpc {

void CreateToken(const RpcContext& context, const v1::CreateTokenRequest& request,
                 Reply<v1::CreateTokenResponse> reply) {
  context.tokens->Create(request.token(), [&context, reply = std::move(reply)](
                                              absl::StatusOr<TokenRegistry::Made> made) mutable {
    if (!made.ok()) return reply(made.status());
    context.scheduler->OnQuotasChanged();
    v1::CreateTokenResponse response;
    *response.mutable_token() = std::move(made->token);
    response.set_secret(std::move(made->secret));
    reply(std::move(response));
  });
}

void ListTokens(const RpcContext& context, const v1::ListTokensRequest& request,
                Reply<v1::ListTokensResponse> reply) {
  const absl::StatusOr<Page> page = PageOf(request);
  if (!page.ok()) return reply(page.status());
  v1::ListTokensResponse response;
  response.set_next_page_token(AddPage(context.tokens->List(), 0, *page, response.mutable_tokens()));
  reply(std::move(response));
}

void RevokeToken(const RpcContext& context, const v1::RevokeTokenRequest& request, Reply<v1::Token> reply) {
  absl::string_view user = request.name();
  if (!absl::ConsumePrefix(&user, "tokens/") || user.empty()) {
    reply(FieldError("name", absl::StrCat("is '", absl::CHexEscape(request.name().substr(0, 80)),
                                          "', which is not the name of a token; write \"tokens/<user>\"")));
    return;
  }
  context.tokens->Revoke(std::string(user),
                         [&context, reply = std::move(reply)](absl::StatusOr<v1::Token> revoked) mutable {
                           // The token's own quota ends with the token.
                           if (revoked.ok()) context.scheduler->OnQuotasChanged();
                           reply(std::move(revoked));
                         });
}

}  // namespace tandem::rpc
