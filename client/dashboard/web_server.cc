#include "client/dashboard/web_server.h"

#include <civetweb.h>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/dashboard/page_files.h"

namespace tandem::dashboard {
namespace {

// The page loads its own files and talks to its own server, and nothing else.
const std::string& Safety() {
  static const auto* const safety = new std::string(
      absl::StrCat("Content-Security-Policy: default-src 'none'; script-src 'self' ", InlineScriptSource(),
                   "; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
                   "form-action 'none'; frame-ancestors 'none'\r\n"
                   "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                   "Cache-Control: no-store\r\nCross-Origin-Resource-Policy: same-origin\r\n"
                   "Connection: close\r\n"));
  return *safety;
}

std::string Head(const mg_connection* connection, int status, absl::string_view content_type,
                 const WebAnswer::Headers& headers) {
  std::string head = absl::StrCat("HTTP/1.1 ", status, " ", mg_get_response_code_text(connection, status),
                                  "\r\nContent-Type: ", content_type, "\r\n", Safety());
  for (const auto& [name, value] : headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  return head;
}

class Answer : public WebAnswer {
 public:
  explicit Answer(mg_connection* connection) : connection_(connection) {}

  using WebAnswer::Send;

  void Send(int status, absl::string_view content_type, absl::string_view body,
            const Headers& headers) override {
    status_ = status;
    // A browser that has left needs no answer.
    Write(absl::StrCat(Head(connection_, status, content_type, headers), "Content-Length: ", body.size(),
                       "\r\n\r\n"));
    Write(body);
  }
  bool Begin(absl::string_view content_type, const Headers& headers) override {
    status_ = 200;
    return Write(absl::StrCat(Head(connection_, 200, content_type, headers), "\r\n"));
  }
  bool Write(absl::string_view bytes) override {
    // If the browser is slow, mg_write may take only a part.
    while (!bytes.empty() && is_open_) {
      const int written = mg_write(connection_, bytes.data(), bytes.size());
      if (written <= 0) is_open_ = false;
      if (is_open_) bytes.remove_prefix(written);
    }
    return is_open_;
  }

  int status() const { return status_; }

 private:
  mg_connection* const connection_;
  bool is_open_ = true;
  int status_ = 500;
};

}  // namespace

std::string WebRequest::Parameter(absl::string_view name) const {
  std::string value(query.size() + 1, '\0');
  const int size =
      mg_get_var(query.data(), query.size(), std::string(name).c_str(), value.data(), value.size());
  value.resize(size < 0 ? 0 : size);
  return value;
}

class WebServer::Impl {
 public:
  explicit Impl(Handler handler) : handler_(std::move(handler)) {}
  ~Impl() {
    if (context_ != nullptr) mg_stop(context_);
  }

  absl::StatusOr<int> Start(const std::string& host, int port) {
    static absl::once_flag once;
    absl::call_once(once, [] { mg_init_library(0); });
    const std::string listen =
        absl::StrCat(absl::StrContains(host, ':') ? absl::StrCat("[", host, "]") : host, ":", port);
    // An open page has a thread for each of its streams. A connection without a request has one for 2 s.
    const char* options[] = {"listening_ports",
                             listen.c_str(),
                             "num_threads",
                             "128",
                             "connection_queue",
                             "256",
                             "request_timeout_ms",
                             "2000",
                             "enable_keep_alive",
                             "no",
                             "max_request_size",
                             "16384",
                             nullptr};
    mg_callbacks callbacks = {};
    callbacks.begin_request = &Impl::OnRequest;
    callbacks.log_message = [](const mg_connection*, const char*) { return 1; };
    char text[256] = "";
    mg_error_data error = {};
    error.text = text;
    error.text_buffer_size = sizeof(text);
    mg_init_data init = {};
    init.callbacks = &callbacks;
    init.user_data = this;
    init.configuration_options = options;
    context_ = mg_start2(&init, &error);
    mg_server_port found = {};
    if (context_ == nullptr || mg_get_server_ports(context_, 1, &found) < 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot serve the dashboard on ", listen,
                       ": the port is in use, or the host is not a numeric IPv4 address of this machine (",
                       text, "); choose another with --listen"));
    }
    return found.port;
  }

 private:
  // Answers every request, so that the library serves none by itself.
  static int OnRequest(mg_connection* connection) {
    const mg_request_info* info = mg_get_request_info(connection);
    const Impl* self = static_cast<const Impl*>(info->user_data);
    const auto text = [](const char* value) { return std::string(value == nullptr ? "" : value); };
    const auto header = [&](const char* name) { return text(mg_get_header(connection, name)); };
    Answer answer(connection);
    WebRequest request{.method = text(info->request_method),
                       .path = text(info->local_uri),
                       .query = text(info->query_string),
                       .host = header("Host"),
                       .origin = header("Origin"),
                       .fetch_site = header("Sec-Fetch-Site"),
                       .cookie = header("Cookie"),
                       .content_type = header("Content-Type"),
                       .body = ""};
    if (info->content_length > static_cast<long long>(kMostBodyBytes)) {
      answer.Send(413, "text/plain", "cannot take the request: it has more than 1 MiB; send less\n");
      return answer.status();
    }
    if (info->content_length > 0) request.body.resize(static_cast<size_t>(info->content_length));
    size_t have = 0;
    while (have < request.body.size()) {
      const int got = mg_read(connection, request.body.data() + have, request.body.size() - have);
      if (got <= 0) break;
      have += static_cast<size_t>(got);
    }
    request.body.resize(have);
    self->handler_(request, answer);
    return answer.status();
  }

  const Handler handler_;
  mg_context* context_ = nullptr;
};

absl::StatusOr<std::unique_ptr<WebServer>> WebServer::Start(const std::string& host, int port,
                                                            Handler handler) {
  auto impl = std::make_unique<Impl>(std::move(handler));
  const absl::StatusOr<int> found = impl->Start(host, port);
  if (!found.ok()) return found.status();
  return std::unique_ptr<WebServer>(new WebServer(std::move(impl), *found));
}

WebServer::WebServer(std::unique_ptr<Impl> impl, int port) : impl_(std::move(impl)), port_(port) {}

WebServer::~WebServer() = default;

}  // namespace tandem::dashboard
