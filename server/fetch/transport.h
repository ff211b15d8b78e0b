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

// The keys to sign a request for S3 (AWS Signature Version 4).
struct S3Signature {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // Empty: none.
  std::string region;
};

// A GET request.
struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // For example "Range: bytes=10-".
  // True if the request may connect to non-public addresses.
  bool any_address = false;
  std::optional<S3Signature> signature;
};

// A response without its content.
struct HttpResponse {
  int status = 0;
  // Keyed by the lower-case name.
  std::map<std::string, std::string> headers;
  // The absolute target of a redirection.
  std::string redirect;
  // The beginning of the content if the status is no success.
  std::string error_body;

  // Returns a header's value; empty if missing.
  std::string Header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

// Receives the content of a successful response.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  // Called before the content. An error ends the request with this error.
  virtual absl::Status OnHeaders(const HttpResponse& response) = 0;
  virtual absl::Status OnData(absl::string_view data) = 0;
};

// Makes HTTP requests, with or without TLS. Thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // Returns the response, of any status. The content of a successful response was sent to `sink`, complete if
  // the server gave its length. Does not follow redirections. UNAVAILABLE: a temporary error, such as a
  // refused, broken or stalled connection. CANCELLED: Stop was called. PERMISSION_DENIED with the reason
  // FETCH_NOT_ALLOWED: the name leads to a forbidden address. Other errors are permanent.
  virtual absl::StatusOr<HttpResponse> Get(const HttpRequest& request, HttpSink& sink) = 0;
  // Ends all running requests soon, and later requests at once.
  virtual void Stop() = 0;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_FETCH_TRANSPORT_H_
