#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "client/cli/app_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::cli {
namespace {

using ::testing::HasSubstr;

class TokensCommandTest : public AppFixture {
 protected:
  TokensCommandTest() {
    daemon_.create_token = [this](const v1::CreateTokenRequest& request, v1::CreateTokenResponse* response) {
      asked_ = request.token();
      *response->mutable_token() = request.token();
      response->set_secret("the-secret");
      return grpc::Status::OK;
    };
  }

  int64_t Now() const { return absl::ToUnixSeconds(terminal_.Now()); }

  v1::Token asked_;
};

TEST_F(TokensCommandTest, CreatePrintsNothingButTheSecretToStandardOutput) {
  EXPECT_EQ(RunCommand({"tokens", "create", "ann"}, terminal_), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out(), "the-secret\n");
  EXPECT_EQ(asked_.role(), v1::TOKEN_ROLE_UNSPECIFIED);
  EXPECT_FALSE(asked_.has_expire_time());
  EXPECT_FALSE(asked_.has_max_disk_bytes());
  EXPECT_FALSE(asked_.has_max_streams());
}

TEST_F(TokensCommandTest, AFileOfATokenIsItsOwnersAlone) {
  const std::string path = folder_ + "/ann.token";
  EXPECT_EQ(RunCommand({"tokens", "create", "ann", "--to", path}, terminal_), 0) << terminal_.err();
  EXPECT_EQ(terminal_.out().find("the-secret"), std::string::npos);
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "the-secret\n");
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  // The command must not overwrite a file, nor create a token that nobody can read.
  asked_.Clear();
  EXPECT_EQ(RunCommand({"tokens", "create", "bob", "--to", path}, terminal_), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("the file exists"));
  EXPECT_EQ(RunCommand({"tokens", "create", "bob", "--to", folder_ + "/no/bob"}, terminal_), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("cannot create "));
  EXPECT_EQ(asked_.user(), "");
  daemon_.create_token = [](const v1::CreateTokenRequest&, v1::CreateTokenResponse*) {
    return grpc::Status(grpc::StatusCode::ALREADY_EXISTS, "bob has one");
  };
  EXPECT_EQ(RunCommand({"tokens", "create", "bob", "--to", folder_ + "/bob"}, terminal_), 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/bob"));
}

TEST_F(TokensCommandTest, CreateSendsRoleExpiryAndLimits) {
  EXPECT_EQ(RunCommand({"tokens", "create", "vic", "--role", "viewer", "--expires", "30d", "--max-disk",
                        "2GiB", "--max-streams", "5", "--max-devices", "3", "--max-queued-jobs", "7"},
                       terminal_),
            0)
      << terminal_.err();
  EXPECT_EQ(asked_.role(), v1::TOKEN_ROLE_VIEWER);
  EXPECT_EQ(asked_.expire_time().seconds(), Now() + 30 * 24 * 3600);
  EXPECT_EQ(asked_.max_disk_bytes(), int64_t{2} << 30);
  EXPECT_EQ(asked_.max_streams(), 5);
  EXPECT_EQ(asked_.max_devices(), 3);
  EXPECT_EQ(asked_.max_queued_jobs(), 7);
  EXPECT_EQ(RunCommand({"tokens", "create", "vic", "--expires", "90m"}, terminal_), 0);
  EXPECT_EQ(asked_.expire_time().seconds(), Now() + 90 * 60);
  EXPECT_EQ(RunCommand({"tokens", "create", "zoe", "--admin"}, terminal_), 0);
  EXPECT_EQ(asked_.role(), v1::TOKEN_ROLE_ADMIN);
}

TEST_F(TokensCommandTest, WrongOptionsAreRefusedBeforeAnyCall) {
  for (const char* const wrong : {"0d", "-1h", "soon", "d", "", "99999999999d"}) {
    EXPECT_EQ(RunCommand({"tokens", "create", "ann", "--expires", wrong}, terminal_), 2) << wrong;
  }
  EXPECT_THAT(terminal_.err(), HasSubstr("12h, at most 36500d, got `99999999999d`"));
  for (const char* const wrong : {"king", "3", ""}) {
    EXPECT_EQ(RunCommand({"tokens", "create", "ann", "--role", wrong}, terminal_), 2) << wrong;
    EXPECT_THAT(terminal_.err(), HasSubstr(std::string("want viewer, submitter or admin, got `") + wrong));
  }
  EXPECT_EQ(RunCommand({"tokens", "create", "ann", "--role", "viewer", "--admin"}, terminal_), 2);
  EXPECT_EQ(RunCommand({"tokens", "create", "ann", "--max-disk", "0"}, terminal_), 2);
  EXPECT_EQ(asked_.user(), "");
}

TEST_F(TokensCommandTest, ListShowsRolesAndWhatHasExpired) {
  daemon_.list_tokens = [this](v1::ListTokensResponse* response) {
    const auto add = [&](const char* user, v1::TokenRole role) {
      v1::Token& token = *response->add_tokens();
      token.set_user(user);
      token.set_role(role);
      token.mutable_create_time()->set_seconds(Now() - 24 * 3600);
      return &token;
    };
    add("ann", v1::TOKEN_ROLE_SUBMITTER)->set_max_streams(4);
    add("bob", v1::TOKEN_ROLE_SUBMITTER)->set_max_disk_bytes(int64_t{500} << 30);
    add("cyd", v1::TOKEN_ROLE_SUBMITTER)->set_max_disk_bytes(1'500'000'000);
    add("vic", v1::TOKEN_ROLE_VIEWER)->mutable_expire_time()->set_seconds(Now() + 2 * 24 * 3600 - 1);
    add("zoe", v1::TOKEN_ROLE_ADMIN)->mutable_expire_time()->set_seconds(Now() - 3 * 3600);
    return grpc::Status::OK;
  };
  terminal_.width = 200;
  EXPECT_EQ(RunCommand({"tokens"}, terminal_), 0) << terminal_.err();
  EXPECT_THAT(terminal_.out(), HasSubstr("ROLE"));
  EXPECT_THAT(terminal_.out(), ::testing::ContainsRegex("ann +submitter +never .*at most 4"));
  EXPECT_THAT(terminal_.out(), ::testing::ContainsRegex("bob .*at most 500 GiB"));
  EXPECT_THAT(terminal_.out(), ::testing::ContainsRegex("cyd .*at most 1.5 GB"));
  EXPECT_THAT(terminal_.out(), ::testing::ContainsRegex("vic +viewer +in 2 d"));
  EXPECT_THAT(terminal_.out(), ::testing::ContainsRegex("zoe +admin +expired 3 h ago"));
}

TEST_F(TokensCommandTest, AnExpiredTokenIsToldFromAWrongOne) {
  daemon_.list_tokens = [](v1::ListTokensResponse*) {
    return grpc::Status(
        grpc::StatusCode::UNAUTHENTICATED,
        "the token of \"ann\" expired at 2026-01-01 00:00:00 UTC; an administrator can revoke it");
  };
  std::filesystem::create_directories(folder_ + "/tandem");
  terminal_.environment["TANDEM_TOKEN_FILE"] = folder_ + "/token";
  FILE* const file = std::fopen((folder_ + "/token").c_str(), "w");
  std::fputs("once-right\n", file);
  std::fclose(file);
  EXPECT_EQ(RunCommand({"tokens"}, terminal_), 2);
  EXPECT_THAT(terminal_.err(), HasSubstr("expired at 2026-01-01 00:00:00 UTC"));
}

}  // namespace
}  // namespace tandem::cli
