#include "server/http/http_server.h"

#include <civetweb.h>

#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

void Answer(mg_connection* connection, const HttpPage& response, bool with_body) {
  // Do not wait for the rest of the request.
  mg_disable_connection_keep_alive(connection);
  const std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ", mg_get_response_code_text(connection, response.status),
      "\r\nContent-Type: ", response.content_type, "\r\nContent-Length: ", response.body.size(),
      response.status == 405 ? "\r\nAllow: GET, HEAD" : "",
      "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
  // Ignore errors: the client is gone.
  mg_write(connection, head.data(), head.size());
  if (with_body) mg_write(connection, response.body.data(), response.body.size());
}

// Runs once per process. Never undone, because another server may use the library.
void InitLibrary() {
  static absl::once_flag once;
  absl::call_once(once, [] { mg_init_library(0); });
}

}  // namespace

class HttpServer::Impl {
 public:
  explicit Impl(std::map<std::string, Page> pages) : pages_(std::move(pages)) {}
  ~Impl() {
    if (context_ != nullptr) mg_stop(context_);
  }

  // Returns the port.
  absl::StatusOr<int> Start(const ListenAddress& address) {
    InitLibrary();
    const std::string listen = address.ToString();
    // A connection holds a thread until its request is complete. Slow clients are cut off soon, so that
    // waiting clients get a thread.
    const char* options[] = {"listening_ports",
                             listen.c_str(),
                             "num_threads",
                             "16",
                             "connection_queue",
                             "64",
                             "request_timeout_ms",
                             "2000",
                             "enable_keep_alive",
                             "no",
                             "max_request_size",
                             "8192",
                             nullptr};
    mg_callbacks callbacks = {};
    callbacks.begin_request = &Impl::OnRequest;
    callbacks.log_message = &Impl::OnLog;
    char text[256] = "";
    mg_error_data error = {};
    error.text = text;
    error.text_buffer_size = sizeof(text);
    mg_init_data init = {};
    init.callbacks = &callbacks;
    init.user_data = this;
    init.configuration_options = options;
    context_ = mg_start2(&init, &error);
    if (context_ == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "cannot serve metrics on ", listen,
          ": the port is in use by another program, or the host is not an IPv4 address of this machine (",
          text, "); choose another with --metrics-listen"));
    }
    mg_server_port port = {};
    if (mg_get_server_ports(context_, 1, &port) < 1)
      return absl::InternalError("cannot serve metrics: the HTTP server reports no port");
    return port.port;
  }

 private:
  // Handles every request, so that the library serves no files itself.
  static int OnRequest(mg_connection* connection) {
    const mg_request_info* info = mg_get_request_info(connection);
    const Impl* self = static_cast<const Impl*>(info->user_data);
    const std::string method = info->request_method == nullptr ? "" : info->request_method;
    const auto page = self->pages_.find(info->local_uri == nullptr ? "" : info->local_uri);
    HttpPage response;
    if (method != "GET" && method != "HEAD") {
      response.status = 405;
      response.body = "only GET and HEAD are served\n";
    } else if (page == self->pages_.end()) {
      response.status = 404;
      response.body = "there is: ";
      for (const auto& [path, unused] : self->pages_) absl::StrAppend(&response.body, path, " ");
      response.body.back() = '\n';
    } else {
      response = page->second();
    }
    Answer(connection, response, method != "HEAD");
    return response.status;
  }

  // The daemon's log does not report clients' mistakes.
  static int OnLog(const mg_connection*, const char*) { return 1; }

  const std::map<std::string, Page> pages_;
  mg_context* context_ = nullptr;
};

bool HttpServer::HasIpv6() { return mg_check_feature(MG_FEATURES_IPV6) != 0; }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const ListenAddress& address,
                                                              std::map<std::string, Page> pages) {
  auto impl = std::make_unique<Impl>(std::move(pages));
  const absl::StatusOr<int> port = impl->Start(address);
  if (!port.ok()) return port.status();
  ListenAddress found = address;
  found.port = *port;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(found), std::move(impl)));
}

HttpServer::HttpServer(ListenAddress address, std::unique_ptr<Impl> impl)
    : address_(std::move(address)), impl_(std::move(impl)) {}

HttpServer::~HttpServer() = default;

}  // namespace tandem
