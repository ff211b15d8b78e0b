#ifndef TANDEM_CLIENT_DASHBOARD_WEB_SERVER_H_
#define TANDEM_CLIENT_DASHBOARD_WEB_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tandem::dashboard {

// A request of a browser. Header fields that the browser did not send are "".
struct WebRequest {
  std::string method;
  // Decoded, without the query.
  std::string path;
  // Still encoded, without the '?'.
  std::string query;
  std::string host;
  std::string origin;
  // Sec-Fetch-Site.
  std::string fetch_site;
  std::string cookie;
  std::string content_type;
  // At most kMostBodyBytes.
  std::string body;

  // Returns the decoded value of a query's parameter, or "".
  std::string Parameter(absl::string_view name) const;
};

inline constexpr size_t kMostBodyBytes = 1 << 20;

// Takes the answer to a request, from the thread that handles the request.
class WebAnswer {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  virtual ~WebAnswer() = default;

  // Sends a whole answer. Call this once, and then nothing else.
  virtual void Send(int status, absl::string_view content_type, absl::string_view body,
                    const Headers& headers) = 0;
  void Send(int status, absl::string_view content_type, absl::string_view body) {
    Send(status, content_type, body, {});
  }
  // Begins an answer that ends with the connection. Returns false if the browser has left.
  virtual bool Begin(absl::string_view content_type, const Headers& headers) = 0;
  // Sends more of the answer. Returns false if the browser has left, or takes no bytes for some seconds.
  virtual bool Write(absl::string_view bytes) = 0;
};

// An HTTP/1.1 server for the browser of a single user, on CivetWeb. Every answer forbids the browser to load
// files from other sites, to show the answer in a frame, and to store the answer.
class WebServer {
 public:
  // Answers a request on a thread of the server. Several threads answer requests at the same time. An answer
  // may last as long as a page is open.
  using Handler = std::function<void(const WebRequest&, WebAnswer&)>;

  // Listens on a numeric address. Port 0 is any free port. FAILED_PRECONDITION if the address is in use or is
  // not this machine's.
  static absl::StatusOr<std::unique_ptr<WebServer>> Start(const std::string& host, int port, Handler handler);
  // Waits for the handlers to return.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  // The port in use.
  int port() const { return port_; }

 private:
  class Impl;
  explicit WebServer(std::unique_ptr<Impl> impl, int port);

  std::unique_ptr<Impl> impl_;
  const int port_;
};

}  // namespace tandem::dashboard

#endif  // TANDEM_CLIENT_DASHBOARD_WEB_SERVER_H_
