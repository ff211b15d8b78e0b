#include "server/fetch/http_origin.h"

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/status_macros.h"

namespace tandem {
namespace {

constexpr int kMostRedirections = 5;

absl::Status Explain(const DataUrl& url, const HttpResponse& response) {
  TANDEM_RETURN_IF_ERROR(PatienceAsked(response));
  const std::string where = absl::StrCat("is ", url.shown, ", but ");
  switch (response.status) {
    case 401:
    case 403:
      return absl::InvalidArgumentError(
          absl::StrCat(where, "the server refuses it (HTTP status ", response.status,
                       "); it must be readable without a password, and a signed address may have expired"));
    case 404:
    case 410:
      return absl::InvalidArgumentError(absl::StrCat(where, "the server has no such file (HTTP status ",
                                                     response.status, "); check the address"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(where, "the server answered with HTTP status ", response.status));
  }
}

}  // namespace

absl::StatusOr<HttpResponse> HttpOrigin::Get(const std::vector<std::string>& headers, HttpSink& sink) {
  DataUrl url = url_;
  for (int redirections = 0;; ++redirections) {
    if (absl::Status allowed = policy_->Check(url); !allowed.ok()) {
      if (redirections == 0) return allowed;
      return WithReason(absl::Status(allowed.code(), absl::StrCat("is ", url_.shown,
                                                                  ", which redirects to another address: it ",
                                                                  allowed.message())),
                        GetReason(allowed));
    }
    HttpRequest request;
    request.url = url.location;
    request.headers = headers;
    request.any_address = policy_->ForHost(url.host, url.port) == FetchPolicy::Access::kAny;
    absl::StatusOr<HttpResponse> response = transport_->Get(request, sink);
    if (!response.ok()) {
      if (!absl::IsPermissionDenied(response.status())) return response;
      return WithReason(absl::PermissionDeniedError(absl::StrCat("is ", url_.shown, ", and ", url.host, " ",
                                                                 response.status().message(), " ", url.host)),
                        GetReason(response.status()));
    }
    if (IsUsable(*response)) return response;
    if (response->status < 300 || response->status >= 400 || response->redirect.empty()) {
      return Explain(url, *response);
    }
    if (redirections == kMostRedirections) {
      return absl::InvalidArgumentError(absl::StrCat("is ", url_.shown, ", which redirects more than ",
                                                     kMostRedirections, " times, the last time to ",
                                                     url.shown));
    }
    absl::StatusOr<DataUrl> next = ParseDataUrl(response->redirect);
    if (!next.ok() || next->is_s3()) {
      return absl::InvalidArgumentError(
          absl::StrCat("is ", url_.shown,
                       ", which redirects to neither http nor https; give an address with http or https"));
    }
    if (url.scheme == DataUrl::Scheme::kHttps && next->scheme != DataUrl::Scheme::kHttps) {
      return absl::InvalidArgumentError(absl::StrCat("is ", url_.shown, ", which redirects from https to ",
                                                     next->shown, "; give that address if it is meant"));
    }
    url = *std::move(next);
  }
}

}  // namespace tandem
