#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "server/auth/authenticator.h"
#include "server/auth/listen_policy.h"
#include "server/auth/token.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Metadata = Authenticator::Metadata;

void WriteFile(const std::string& path, const std::string& content, mode_t mode) {
  std::ofstream(path) << content;
  ASSERT_EQ(chmod(path.c_str(), mode), 0);
}

TEST(Token, IsMadeOnceAndOnlyForItsOwner) {
  const TemporaryFolder folder, other;
  const std::string path = folder.path() + "/token";
  const absl::StatusOr<std::string> made = LoadOrCreateToken(path);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->size(), 43);
  EXPECT_EQ(made->find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos);
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600);
  EXPECT_EQ(*LoadOrCreateToken(path), *made);
  EXPECT_NE(*LoadOrCreateToken(other.path() + "/token"), *made);
}

TEST(Token, IsNotMadeIfItIsOnlyLoaded) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/token";
  const absl::Status missing = LoadToken(path).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("cannot read the token file " + path));
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  const absl::StatusOr<std::string> made = LoadOrCreateToken(path);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(*LoadToken(path), *made);
}

TEST(Token, RefusesAFileThatOthersCanRead) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/token";
  WriteFile(path, "0123456789abcdef0123456789abcdef\n", 0640);
  const absl::Status status = LoadOrCreateToken(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600"));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(*LoadOrCreateToken(path), "0123456789abcdef0123456789abcdef");
}

TEST(Token, RefusesWhatIsNoToken) {
  for (const std::string& content :
       {std::string(), std::string("short"), std::string("has blanks inside it, so no token"),
        std::string(1000, 'x')}) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/token";
    WriteFile(path, content, 0600);
    EXPECT_EQ(LoadOrCreateToken(path).status().code(), absl::StatusCode::kFailedPrecondition) << content;
  }
}

TEST(Token, RefusesWhatIsNoFile) {
  const TemporaryFolder temporary;
  const std::string& folder = temporary.path();
  const absl::Status no_file = LoadOrCreateToken(folder).status();
  EXPECT_EQ(no_file.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(no_file.message()), HasSubstr("it is not a regular file"));
  // A file in the place of the folder.
  WriteFile(folder + "/file", "", 0600);
  const absl::Status unreadable = LoadOrCreateToken(folder + "/file/token").status();
  EXPECT_EQ(unreadable.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(unreadable.message()),
              HasSubstr("cannot read the token file " + folder + "/file/token"));
}

TEST(Token, ComparesWholeTexts) {
  EXPECT_TRUE(ConstantTimeEqual("abc", "abc"));
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "ab"));
  EXPECT_FALSE(ConstantTimeEqual("", std::string(1, '\0')));
}

TEST(AuthenticatorTest, WantsTheTokenOnEveryCallButHealth) {
  const Authenticator authenticator("secret-token-0123456789");
  const Metadata method = {":path", "/tandem.v1.JobService/GetJob"};
  const Metadata right = {"authorization", "Bearer secret-token-0123456789"};
  EXPECT_TRUE(authenticator.Check({method, right}).ok());
  EXPECT_TRUE(authenticator.Check({method, {"authorization", "bearer secret-token-0123456789"}}).ok());
  EXPECT_TRUE(authenticator.Check({Metadata{":path", "/grpc.health.v1.Health/Check"}}).ok());
  EXPECT_TRUE(authenticator.Check({Metadata{":path", "/grpc.health.v1.Health/Watch"}, right}).ok());

  const std::vector<std::vector<Metadata>> refused = {
      {},
      {method},
      {method, {"authorization", "Bearer wrong"}},
      {method, {"authorization", "secret-token-0123456789"}},
      {method, {"authorization", "Bearer secret-token-0123456789 "}},
      {method, {"authorization", "Bearer "}},
      {method, right, right},
      {{":path", "/grpc.health.v1.HealthX/Check"}},
      {{":path", "/grpc.health.v1.Health/Watch"}},
      {{":path", "/grpc.health.v1.Health/Check/"}},
      {{":path", "/grpc.health.v1.Health/CheckX"}},
      {{":path", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}},
  };
  for (const auto& metadata : refused) {
    const absl::Status status = authenticator.Check(metadata);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(status.message().find("secret-token"), absl::string_view::npos);
  }
  EXPECT_THAT(std::string(authenticator.Check({method}).message()),
              HasSubstr("the file 'token' in the daemon's state folder"));
}

TEST(ListenPolicy, ReadsAddresses) {
  const auto v4 = ParseListenAddress("127.0.0.1:7447");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 7447);
  const auto v6 = ParseListenAddress("[::1]:0");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6->ToString(), "[::1]:0");
  for (const char* wrong :
       {"", "7447", "127.0.0.1", ":7447", "::1:7447", "host:", "host:x", "host:65536", "host:-1"}) {
    EXPECT_EQ(ParseListenAddress(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(ListenPolicy, KnowsLoopback) {
  for (const char* text : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "[::ffff:127.0.0.1]:1"}) {
    EXPECT_TRUE(ParseListenAddress(text)->IsLoopback()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(ParseListenAddress(text)->IsLoopback()) << text;
  }
}

TEST(ListenPolicy, RefusesTheNetworkWithoutTls) {
  const ListenAddress everywhere{"0.0.0.0", 7447};
  const absl::Status refused = CheckListenPolicy(everywhere, false, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--tls-cert"));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("0.0.0.0:7447"));
  EXPECT_TRUE(CheckListenPolicy(everywhere, true, false).ok());
  EXPECT_TRUE(CheckListenPolicy(everywhere, false, true).ok());
  EXPECT_TRUE(CheckListenPolicy({"127.0.0.1", 7447}, false, false).ok());
}

}  // namespace
}  // namespace tandem
