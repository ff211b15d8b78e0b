#include "server/fetch/fetch_policy.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "engine/base/error_reason.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Access = FetchPolicy::Access;

FetchPolicy Policy(const std::vector<std::string>& patterns) {
  absl::StatusOr<FetchPolicy> policy = FetchPolicy::Parse(patterns);
  EXPECT_TRUE(policy.ok()) << policy.status();
  return *policy;
}

bool IsPublic(const std::string& text) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    return IsPublicAddress(reinterpret_cast<const sockaddr*>(&v4));
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
  return IsPublicAddress(reinterpret_cast<const sockaddr*>(&v6));
}

TEST(IsPublicAddressTest, TellsTheInternetFromTheRest) {
  for (const char* address : {"8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:2800:220:1::1",
                              "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808"}) {
    EXPECT_TRUE(IsPublic(address)) << address;
  }
  for (const char* address : {"0.0.0.0",
                              "10.1.2.3",
                              "100.64.0.1",
                              "127.0.0.1",
                              "127.255.255.254",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.168.1.1",
                              "198.18.0.1",
                              "224.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "fe80::1",
                              "fc00::1",
                              "fd12::1",
                              "ff02::1",
                              "::ffff:127.0.0.1",
                              "::ffff:169.254.169.254",
                              "64:ff9b::7f00:1",
                              "2002:7f00:1::",
                              "2001::1",
                              "2001:db8::1"}) {
    EXPECT_FALSE(IsPublic(address)) << address;
  }
}

TEST(FetchPolicyTest, PublicMeansNamesAndPublicAddresses) {
  const FetchPolicy policy = Policy({"public"});
  EXPECT_EQ(policy.ForHost("example.com", 443), Access::kPublic);
  EXPECT_EQ(policy.ForHost("8.8.8.8", 80), Access::kPublic);
  for (const char* host : {"localhost", "a.localhost", "127.0.0.1", "127.1", "0x7f000001", "2130706433",
                           "0177.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "[::1]"}) {
    if (host[0] == '[') continue;
    EXPECT_EQ(policy.ForHost(host, 80), Access::kNone) << host;
  }
  EXPECT_FALSE(policy.AllowsObject("bucket", "key"));
}

TEST(FetchPolicyTest, NamedHostsMayBePrivate) {
  const FetchPolicy policy = Policy({"data.local", "127.0.0.1:8080", "*.corp.example", "[::1]:9000"});
  EXPECT_EQ(policy.ForHost("data.local", 80), Access::kAny);
  EXPECT_EQ(policy.ForHost("127.0.0.1", 8080), Access::kAny);
  EXPECT_EQ(policy.ForHost("127.0.0.1", 8081), Access::kNone);
  EXPECT_EQ(policy.ForHost("a.corp.example", 443), Access::kAny);
  EXPECT_EQ(policy.ForHost("corp.example", 443), Access::kNone);
  EXPECT_EQ(policy.ForHost("evilcorp.example", 443), Access::kNone);
  EXPECT_EQ(policy.ForHost("::1", 9000), Access::kAny);
  EXPECT_EQ(policy.ForHost("example.com", 443), Access::kNone) << "public was not given";
}

TEST(FetchPolicyTest, Buckets) {
  const FetchPolicy policy = Policy({"s3://data/public/", "s3://other"});
  EXPECT_TRUE(policy.AllowsObject("data", "public/x"));
  EXPECT_FALSE(policy.AllowsObject("data", "private/x"));
  EXPECT_TRUE(policy.AllowsObject("other", "anything"));
  EXPECT_FALSE(policy.AllowsObject("third", "x"));
  EXPECT_TRUE(Policy({"s3://*"}).AllowsObject("third", "x"));
}

TEST(FetchPolicyTest, NoneMeansNowhere) {
  const absl::Status status = Policy({"none"}).Check(*ParseDataUrl("https://example.com/x?token=1"));
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_EQ(GetReason(status), "FETCH_NOT_ALLOWED");
  EXPECT_THAT(std::string(status.message()), HasSubstr("--fetch-from example.com"));
  EXPECT_EQ(status.message().find("token"), absl::string_view::npos);
}

TEST(FetchPolicyTest, OtherPatternsAreRefused) {
  for (const char* pattern :
       {"", "https://example.com", "example.com/path", "example.com:99999", "[::1]:0", "*", "a*b", "s3://"}) {
    EXPECT_FALSE(FetchPolicy::Parse({pattern}).ok()) << pattern;
  }
  EXPECT_FALSE(FetchPolicy::Parse({"none", "public"}).ok());
}

}  // namespace
}  // namespace tandem
