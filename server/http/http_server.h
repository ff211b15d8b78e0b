#ifndef TANDEM_SERVER_HTTP_HTTP_SERVER_H_
#define TANDEM_SERVER_HTTP_HTTP_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/listen_policy.h"

namespace tandem {

// What a page is at the moment.
struct HttpPage {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Serves pages that are read with GET or HEAD, over plain HTTP and without authentication. Thread-safe.
//
// A few threads of its own; a client that is slow to ask is cut off after some seconds, and what comes after
// a request's head is not read.
class HttpServer {
 public:
  // Called on the server's threads, several at once.
  using Page = std::function<HttpPage()>;

  // Serves the pages at these paths ("/metrics"); all others are 404. Port 0 takes any that is free.
  // FAILED_PRECONDITION: it cannot listen there; the message names the address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const ListenAddress& address,
                                                           std::map<std::string, Page> pages);
  // Waits for the pages that are being made.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it listens, with the port that was found.
  const ListenAddress& address() const { return address_; }

 private:
  class Impl;
  HttpServer(ListenAddress address, std::unique_ptr<Impl> impl);

  const ListenAddress address_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace tandem

#endif  // TANDEM_SERVER_HTTP_HTTP_SERVER_H_
