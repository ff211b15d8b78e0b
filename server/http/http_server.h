#ifndef TANDEM_SERVER_HTTP_HTTP_SERVER_H_
#define TANDEM_SERVER_HTTP_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/listen_policy.h"

namespace tandem {

// The current content of a page.
struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Serves pages to GET and HEAD over plain HTTP, without authentication. Thread-safe.
//
// Has a few threads of its own. Cuts off slow clients after some seconds. Reads only a request's head.
class HttpServer {
 public:
  // Called on the server's threads, also concurrently.
  using Page = std::function<HttpPage()>;

  // Returns true if servers can listen at IPv6 addresses. Debian 12's CivetWeb is built without IPv6.
  static bool HasIpv6();

  // Serves the pages at these paths ("/metrics"); other paths get 404. Port 0 means any free port.
  // FAILED_PRECONDITION: cannot listen at the address, which the message names.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const ListenAddress& address,
                                                           std::map<std::string, Page> pages);
  // Waits for pages in progress.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the address, with the real port.
  const ListenAddress& address() const { return address_; }

 private:
  class Impl;
  HttpServer(ListenAddress address, std::unique_ptr<Impl> impl);

  const ListenAddress address_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_HTTP_SERVER_H_
