#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tandem {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Opens a connection and sends the text.
int Send(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  return fd;
}

// Returns everything that the server sends until it closes the connection.
std::string Receive(int fd) {
  std::string answer;
  char buffer[4096];
  ssize_t got;
  while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) answer.append(buffer, got);
  close(fd);
  return answer;
}

std::string Ask(int port, const std::string& request) { return Receive(Send(port, request)); }

class HttpServerTest : public testing::Test {
 protected:
  HttpServerTest() {
    auto server = HttpServer::Start({"127.0.0.1", 0}, {{"/metrics",
                                                        [] {
                                                          return HttpPage{200, "text/x", "what there is\n"};
                                                        }},
                                                       {"/readyz", [] {
                                                          return HttpPage{503, "text/plain", "not yet\n"};
                                                        }}});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string Ask(const std::string& request) { return tandem::Ask(server_->address().port, request); }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesItsPages) {
  const std::string page = Ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/x\r\n"));
  EXPECT_THAT(page, EndsWith("\r\n\r\nwhat there is\n"));
  EXPECT_THAT(Ask("GET /metrics?name=x HTTP/1.0\r\n\r\n"), EndsWith("what there is\n"));
  EXPECT_THAT(Ask("GET /readyz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
}

TEST_F(HttpServerTest, ServesNothingElse) {
  EXPECT_THAT(Ask("GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  for (const char* path : {"/metrics/", "/../etc/passwd", "/%2e%2e/etc/passwd", "//metrics", "/etc/passwd"}) {
    EXPECT_THAT(Ask(absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n")), testing::Not(HasSubstr("root:")))
        << path;
  }
  EXPECT_THAT(Ask("POST /metrics HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc"), StartsWith("HTTP/1.1 405 "));
  const std::string head = Ask("HEAD /metrics HTTP/1.0\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 14\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, WhatIsNoRequestHurtsNobody) {
  Ask(std::string(20000, 'x') + "\r\n\r\n");
  Ask(absl::StrCat("GET /metrics HTTP/1.1\r\nX: ", std::string(20000, 'y'), "\r\n\r\n"));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("what there is\n"));
}

TEST_F(HttpServerTest, ServesManyAtOnce) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(
        [this] { EXPECT_THAT(Ask("GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("what there is\n")); });
  }
  for (std::thread& client : clients) client.join();
}

// A few endless requests do not delay others, and many of them delay others only for a while.
TEST_F(HttpServerTest, WhoSendsSlowlyIsGivenUp) {
  std::vector<int> slow;
  for (int i = 0; i < 12; ++i) slow.push_back(Send(server_->address().port, "GET /metrics HTTP/1.1\r\nA: "));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("what there is\n"));
  // Answered before the first of them was cut off.
  char byte;
  EXPECT_EQ(recv(slow.front(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  for (int i = 0; i < 12; ++i) slow.push_back(Send(server_->address().port, "GET /metrics HTTP/1.1\r\nA: "));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.0\r\n\r\n"), EndsWith("what there is\n"));
  for (const int fd : slow) EXPECT_THAT(Receive(fd), testing::Not(HasSubstr(" 200 ")));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  const auto second = HttpServer::Start(server_->address(), {});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(server_->address().ToString()));
  EXPECT_FALSE(HttpServer::Start({"203.0.113.1", 0}, {}).ok());
}

TEST_F(HttpServerTest, KnowsIfItCanListenAtIpv6Addresses) {
  const auto server = HttpServer::Start({"::1", 0}, {});
  EXPECT_EQ(server.ok(), HttpServer::HasIpv6()) << server.status();
}

}  // namespace
}  // namespace tandem
