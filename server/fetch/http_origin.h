#ifndef TANDEM_SERVER_FETCH_HTTP_ORIGIN_H_
#define TANDEM_SERVER_FETCH_HTTP_ORIGIN_H_

#include <string>
#include <vector>

#include "server/fetch/data_url.h"
#include "server/fetch/fetch_policy.h"
#include "server/fetch/origin.h"

namespace tandem {

// A file on a web server. Follows redirections to http and https that the policy allows. Never redirects from
// https to http.
class HttpOrigin : public Origin {
 public:
  // `policy` and `transport` must outlive this object.
  HttpOrigin(DataUrl url, const FetchPolicy* policy, Transport* transport)
      : url_(std::move(url)), policy_(policy), transport_(transport) {}
  absl::StatusOr<HttpResponse> Get(const std::vector<std::string>& headers, HttpSink& sink) override;
  const std::string& shown() const override { return url_.shown; }
  const char* resume_header() const override { return "If-Range"; }

 private:
  const DataUrl url_;
  const FetchPolicy* const policy_;
  Transport* const transport_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_HTTP_ORIGIN_H_
