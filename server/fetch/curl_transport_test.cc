// Tests over real loopback sockets: the allowed addresses, and the proxies.
#include "server/fetch/curl_transport.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/mutex.h"
#include "server/fetch/origin.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A web server or proxy that answers every request and keeps connections open.
class LoopbackServer {
 public:
  LoopbackServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  ~LoopbackServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      MutexLock lock(&mutex_);
      for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (const int connection : connections_) close(connection);
    close(listener_);
  }

  std::string Url(const std::string& scheme = "http") const {
    return absl::StrCat(scheme, "://127.0.0.1:", port_, "/");
  }
  // Redirects all later requests to `url`.
  void RedirectTo(const std::string& url) {
    MutexLock lock(&mutex_);
    redirect_ = url;
  }
  // Answers all later requests with an error whose text never ends.
  void FailWithoutEnd() {
    MutexLock lock(&mutex_);
    is_endless_ = true;
  }
  // Returns the first line of each request.
  std::vector<std::string> requests() {
    MutexLock lock(&mutex_);
    return requests_;
  }
  size_t connections() {
    MutexLock lock(&mutex_);
    return connections_.size();
  }

 private:
  void Accept() {
    while (true) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      MutexLock lock(&mutex_);
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] { Serve(connection); });
    }
  }

  void Serve(int connection) {
    std::string text;
    char buffer[4096];
    while (true) {
      const ssize_t size = recv(connection, buffer, sizeof(buffer), 0);
      if (size <= 0) return;
      text.append(buffer, size);
      if (text.find("\r\n\r\n") == std::string::npos) continue;
      std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
      bool is_endless = false;
      {
        MutexLock lock(&mutex_);
        requests_.push_back(text.substr(0, text.find("\r\n")));
        is_endless = is_endless_;
        if (!redirect_.empty()) {
          answer =
              absl::StrCat("HTTP/1.1 302 Found\r\nLocation: ", redirect_, "\r\nContent-Length: 0\r\n\r\n");
        }
      }
      text.clear();
      if (is_endless) {
        answer = "HTTP/1.1 404 Not Found\r\n\r\n";
        const std::string more(1000, 'x');
        while (send(connection, answer.data(), answer.size(), MSG_NOSIGNAL) >= 0) answer = more;
        return;
      }
      if (send(connection, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    }
  }

  const int listener_;
  int port_ = 0;
  std::thread acceptor_;
  std::vector<std::thread> threads_;  // Used by the acceptor only, until it ends.
  Mutex mutex_;
  std::vector<int> connections_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
  std::string redirect_ ABSL_GUARDED_BY(mutex_);
  bool is_endless_ ABSL_GUARDED_BY(mutex_) = false;
};

CurlTransport::Options Through(const Proxies& proxies) {
  CurlTransport::Options options;
  options.proxies = proxies;
  return options;
}

absl::StatusOr<HttpResponse> Get(CurlTransport& transport, const std::string& url, bool any_address = false) {
  MemorySink sink(1000);
  HttpRequest request;
  request.url = url;
  request.any_address = any_address;
  return transport.Get(request, sink);
}

void ExpectRefused(const absl::StatusOr<HttpResponse>& response) {
  EXPECT_TRUE(absl::IsPermissionDenied(response.status())) << response.status();
  EXPECT_EQ(GetReason(response.status()), "FETCH_NOT_ALLOWED");
}

// Sets an environment variable until destroyed.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~ScopedVariable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST(CurlTransportTest, OnlyWhoMayGoAnywhereReachesPrivateAddresses) {
  LoopbackServer server;
  CurlTransport transport({});
  ExpectRefused(Get(transport, server.Url()));
  EXPECT_THAT(server.requests(), IsEmpty());
  const absl::StatusOr<HttpResponse> response = Get(transport, server.Url(), /*any_address=*/true);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 200);
}

TEST(CurlTransportTest, TheTextOfAnErrorEnds) {
  LoopbackServer server;
  server.FailWithoutEnd();
  CurlTransport transport({});
  const absl::StatusOr<HttpResponse> response = Get(transport, server.Url(), /*any_address=*/true);
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->error_body, std::string(16384, 'x'));
}

TEST(CurlTransportTest, AConnectionThatNobodyJudgedIsNotForThoseThatAre) {
  LoopbackServer server;
  CurlTransport transport({});
  ASSERT_TRUE(Get(transport, server.Url(), /*any_address=*/true).ok());
  ExpectRefused(Get(transport, server.Url()));
  ASSERT_TRUE(Get(transport, server.Url(), /*any_address=*/true).ok());
  EXPECT_EQ(server.requests().size(), 2);
  EXPECT_EQ(server.connections(), 1) << "those of its own kind are kept";
}

TEST(CurlTransportTest, AProxyOfOneSchemeLeavesTheOtherJudged) {
  LoopbackServer server;
  CurlTransport of_https(Through({.http = "", .https = server.Url()}));
  ExpectRefused(Get(of_https, server.Url("http")));
  CurlTransport of_http(Through({.http = server.Url(), .https = ""}));
  ExpectRefused(Get(of_http, server.Url("https")));
  EXPECT_THAT(server.requests(), IsEmpty());
  EXPECT_EQ(server.connections(), 0);
  ASSERT_TRUE(Get(of_http, "http://data.invalid/x").ok());
  EXPECT_THAT(server.requests(), ElementsAre("GET http://data.invalid/x HTTP/1.1"));
}

TEST(CurlTransportTest, ARedirectionToTheOtherSchemeIsJudgedAnew) {
  LoopbackServer server;
  server.RedirectTo(server.Url("https"));
  CurlTransport transport(Through({.http = server.Url(), .https = ""}));
  const absl::StatusOr<HttpResponse> response = Get(transport, "http://data.invalid/x");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->redirect, server.Url("https"));
  ExpectRefused(Get(transport, response->redirect));
  EXPECT_EQ(server.connections(), 1);
}

TEST(CurlTransportTest, TheEnvironmentDecidesNothingOnceMore) {
  LoopbackServer server;
  {
    const ScopedVariable variable("http_proxy", server.Url());
    CurlTransport transport({});
    ExpectRefused(Get(transport, "http://127.0.0.1:9/"));
    EXPECT_THAT(server.requests(), IsEmpty());
  }
  const ScopedVariable variable("no_proxy", "*");
  CurlTransport transport(Through({.http = server.Url(), .https = ""}));
  ASSERT_TRUE(Get(transport, "http://127.0.0.1:9/").ok());
  EXPECT_THAT(server.requests(), ElementsAre("GET http://127.0.0.1:9/ HTTP/1.1"));
}

TEST(ProxiesTest, AreThoseOfTheEnvironment) {
  std::map<std::string, std::string> variables;
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  EXPECT_EQ(ReadProxies(environment).For("http://a/"), "");
  variables = {{"HTTPS_PROXY", "s"}, {"HTTP_PROXY", "never, as in CGI it is a header of the request"}};
  EXPECT_EQ(ReadProxies(environment).For("https://a/"), "s");
  EXPECT_EQ(ReadProxies(environment).For("http://a/"), "");
  variables = {{"https_proxy", "s"}, {"HTTPS_PROXY", "other"}, {"ALL_PROXY", "all"}};
  EXPECT_EQ(ReadProxies(environment).For("HTTPS://a/"), "s");
  EXPECT_EQ(ReadProxies(environment).For("http://a/"), "all");
  EXPECT_EQ(ReadProxies(environment).For("ftp://a/"), "");
}

}  // namespace
}  // namespace tandem
