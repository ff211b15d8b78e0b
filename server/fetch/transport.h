#ifndef TANDEM_SERVER_FETCH_TRANSPORT_H_
#define TANDEM_SERVER_FETCH_TRANSPORT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem {

// Signs a request for S3 (AWS Signature Version 4).
struct S3Signature {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // Empty: none.
  std::string region;
};

// What is asked for, by GET.
struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "Range: bytes=10-".
  // Whether it may connect to what is no address of the public Internet.
  bool any_address = false;
  std::optional<S3Signature> signature;
};

// What came back, but for the content.
struct HttpResponse {
  int status = 0;
  // By name in small letters.
  std::map<std::string, std::string> headers;
  // Of a redirection: to where, as a whole URL.
  std::string redirect;
  // The first part of the content where the status is not one of success.
  std::string error_body;

  // Empty where there is none.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// Takes the content of a response of success.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Before the content. An error ends the request with this error.
  virtual absl::Status OnHeaders(const HttpResponse& response) = 0;
  virtual absl::Status OnData(absl::string_view data) = 0;
};

// Speaks HTTP, over TLS or not. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // A response, whatever its status; its content went to `sink` where it is one of success, and is then whole
  // as far as the server said how long it is. Redirections are not followed. UNAVAILABLE: it may work later,
  // such as a connection that was refused, broke, or stood still. CANCELLED: Stop. PERMISSION_DENIED with the
  // reason FETCH_NOT_ALLOWED: the name leads to an address that is not allowed. Others: it will not work.
  virtual absl::StatusOr<HttpResponse> Get(const HttpRequest& request, HttpSink& sink) = 0;
  // Ends all requests soon, and those to come at once.
  virtual void Stop() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_TRANSPORT_H_
