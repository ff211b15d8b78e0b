#include "client/dashboard/access.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace tandem::dashboard {
namespace {

class AccessTest : public testing::Test {
 protected:
  // Returns a request of the page, after the key was exchanged.
  WebRequest Own() {
    WebRequest request;
    request.method = "GET";
    request.path = "/events/jobs";
    request.host = "127.0.0.1:7449";
    request.fetch_site = "same-origin";
    request.cookie = "theme=dark; " + cookie_;
    return request;
  }
  int Refused(const WebRequest& request) {
    const std::optional<Access::Refusal> refusal = access_.Check(request);
    return refusal.has_value() ? refusal->status : 0;
  }

  Access access_{{"127.0.0.1:7449", "localhost:7449"}};
  const std::string header_ = access_.Exchange(access_.key()).value_or("");
  const std::string cookie_ = header_.substr(0, header_.find(';'));
};

TEST_F(AccessTest, TheKeyWorksOnce) {
  EXPECT_NE(header_.find("HttpOnly; SameSite=Strict"), std::string::npos) << header_;
  EXPECT_EQ(access_.Exchange(access_.key()), std::nullopt);
  Access other({"127.0.0.1:1"});
  EXPECT_NE(other.key(), access_.key());
  EXPECT_EQ(other.Exchange(access_.key()), std::nullopt);
  EXPECT_EQ(other.Exchange(""), std::nullopt);
  EXPECT_TRUE(other.Exchange(other.key()).has_value()) << "a wrong key does not use up the right one";
}

TEST_F(AccessTest, ThePageMayAsk) {
  EXPECT_EQ(Refused(Own()), 0);
  WebRequest post = Own();
  post.method = "POST";
  post.content_type = "application/json; charset=utf-8";
  post.origin = "http://127.0.0.1:7449";
  EXPECT_EQ(Refused(post), 0);
  WebRequest by_name = Own();
  by_name.host = "localhost:7449";
  by_name.origin = "http://localhost:7449";
  EXPECT_EQ(Refused(by_name), 0);
}

TEST_F(AccessTest, NobodyElseMay) {
  const auto refused = [this](auto change) {
    WebRequest request = Own();
    change(request);
    return Refused(request);
  };
  EXPECT_EQ(refused([](WebRequest& request) { request.cookie = ""; }), 401);
  EXPECT_EQ(refused([](WebRequest& request) { request.cookie.back() ^= 1; }), 401);
  EXPECT_EQ(refused([this](WebRequest& request) { request.cookie = "x" + cookie_; }), 401);
  EXPECT_EQ(refused([](WebRequest& request) { request.host = "evil.example:7449"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.host = "127.0.0.1"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.host = ""; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.origin = "http://evil.example"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.origin = "null"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.origin = "http://localhost:7449"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.fetch_site = "cross-site"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.fetch_site = "same-site"; }), 403);
  EXPECT_EQ(refused([](WebRequest& request) { request.method = "POST"; }), 403)
      << "a form's request is no JSON";
}

// A link in another page or in a mail opens the page, but nothing else. Browsers send no cookie with it.
TEST_F(AccessTest, ALinkMayLeadToThePage) {
  WebRequest request = Own();
  request.fetch_site = "cross-site";
  request.cookie = "";
  request.path = "/";
  EXPECT_EQ(Refused(request), 0);
  request.path = "/page/app.js";
  EXPECT_EQ(Refused(request), 0);
  request.path = "/api/log";
  EXPECT_EQ(Refused(request), 403);
  request.fetch_site = "same-origin";
  EXPECT_EQ(Refused(request), 401);
}

}  // namespace
}  // namespace tandem::dashboard
