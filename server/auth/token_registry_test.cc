#include "server/auth/token_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/base/error_reason.h"
#include "server/auth/authenticator.h"
#include "server/store/awaited.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using Made = absl::StatusOr<TokenRegistry::Made>;

class TokenRegistryTest : public ::testing::Test {
 protected:
  TokenRegistryTest() { Open(); }
  ~TokenRegistryTest() override { store_->Close(); }

  // Opens the folder like a new daemon.
  void Open() {
    if (store_ != nullptr) store_->Close();
    auto store = Store::Open(folder_.path() + "/tandem.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    tokens_ = std::make_unique<TokenRegistry>(store_.get(), &clock_);
    ASSERT_TRUE(tokens_->Load().ok());
  }

  Made Create(const v1::Token& wanted) {
    Awaited<Made> made;
    tokens_->Create(wanted, made.Done());
    return made.Get();
  }
  void Revoke(const std::string& user) {
    Awaited<absl::StatusOr<v1::Token>> revoked;
    tokens_->Revoke(user, revoked.Done());
    ASSERT_TRUE(revoked.Get().ok());
  }
  v1::Token For(const std::string& user, v1::TokenRole role = v1::TOKEN_ROLE_UNSPECIFIED) {
    v1::Token token;
    token.set_user(user);
    token.set_role(role);
    return token;
  }
  v1::Token Expiring(const std::string& user, absl::Duration after) {
    v1::Token token = For(user);
    token.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(clock_.Now() + after));
    return token;
  }

  TemporaryFolder folder_;
  FakeClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  std::unique_ptr<Store> store_;
  std::unique_ptr<TokenRegistry> tokens_;
};

TEST_F(TokenRegistryTest, RolesHaveADefault) {
  const Made plain = Create(For("ann"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->token.role(), v1::TOKEN_ROLE_SUBMITTER);
  EXPECT_FALSE(tokens_->Identify(plain->secret)->is_admin());

  const Made by_role = Create(For("zoe", v1::TOKEN_ROLE_ADMIN));
  ASSERT_TRUE(by_role.ok());
  EXPECT_TRUE(tokens_->Identify(by_role->secret)->is_admin());

  EXPECT_EQ(tokens_->Identify(Create(For("vic", v1::TOKEN_ROLE_VIEWER))->secret)->role,
            v1::TOKEN_ROLE_VIEWER);
  EXPECT_EQ(tokens_->Identify("nobody's").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TokenRegistryTest, WrongRolesTimesAndLimitsAreNamed) {
  v1::Token wrong = For("ann", static_cast<v1::TokenRole>(77));
  EXPECT_THAT(std::string(Create(wrong).status().message()), HasSubstr("is 77, which is not a role"));
  wrong = Expiring("ann", absl::ZeroDuration());
  EXPECT_THAT(std::string(Create(wrong).status().message()), HasSubstr("must be in the future"));
  wrong.mutable_expire_time()->set_seconds(int64_t{1} << 60);
  EXPECT_THAT(std::string(Create(wrong).status().message()), HasSubstr("token.expire_time"));
  wrong = For("ann");
  wrong.set_max_disk_bytes(0);
  wrong.set_max_streams(-1);
  const absl::Status status = Create(wrong).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("token.max_disk_bytes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("token.max_streams"));
  EXPECT_TRUE(tokens_->List().empty());
}

TEST_F(TokenRegistryTest, ExpiresAtItsTimeAndNotBefore) {
  const Made made = Create(Expiring("ann", absl::Hours(1)));
  ASSERT_TRUE(made.ok()) << made.status();
  const absl::StatusOr<Caller> caller = tokens_->Identify(made->secret);
  ASSERT_TRUE(caller.ok());
  clock_.Advance(absl::Minutes(59));
  EXPECT_TRUE(tokens_->Identify(made->secret).ok());
  EXPECT_TRUE(tokens_->CheckStillValid(*caller).ok());
  clock_.Advance(absl::Minutes(1));
  const absl::Status expired = tokens_->Identify(made->secret).status();
  EXPECT_EQ(expired.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(GetReason(expired), "TOKEN_EXPIRED");
  EXPECT_THAT(std::string(expired.message()),
              HasSubstr("the token of \"ann\": it expired at 2027-01-15 09:00:00 UTC"));
  EXPECT_EQ(GetReason(tokens_->CheckStillValid(*caller)), "TOKEN_EXPIRED");
  // The call's error also says so.
  const Authenticator authenticator("daemons-own-token-0123", tokens_.get());
  const std::string header = "Bearer " + made->secret;
  EXPECT_EQ(authenticator.Check({Authenticator::Metadata{"authorization", header}}), expired);
  // The list still has the token, so that somebody can revoke it. Until then the user gets no other token.
  EXPECT_EQ(tokens_->List().size(), 1);
  EXPECT_EQ(Create(For("ann")).status().code(), absl::StatusCode::kAlreadyExists);
  Revoke("ann");
  EXPECT_TRUE(Create(For("ann")).ok());
}

TEST_F(TokenRegistryTest, ACallerOfARevokedTokenIsNotOneOfTheNext) {
  const Made first = Create(For("ann"));
  const absl::StatusOr<Caller> caller = tokens_->Identify(first->secret);
  ASSERT_TRUE(caller.ok());
  Revoke("ann");
  EXPECT_EQ(GetReason(tokens_->CheckStillValid(*caller)), "TOKEN_REVOKED");
  const Made second = Create(For("ann"));
  EXPECT_EQ(GetReason(tokens_->CheckStillValid(*caller)), "TOKEN_REVOKED");
  EXPECT_TRUE(tokens_->CheckStillValid(*tokens_->Identify(second->secret)).ok());
}

TEST_F(TokenRegistryTest, EverythingIsThereAfterARestart) {
  v1::Token wanted = Expiring("vic", absl::Hours(1));
  wanted.set_role(v1::TOKEN_ROLE_VIEWER);
  wanted.set_max_disk_bytes(int64_t{1} << 40);
  wanted.set_max_streams(3);
  const Made made = Create(wanted);
  ASSERT_TRUE(made.ok()) << made.status();
  Open();
  const std::optional<v1::Token> kept = tokens_->Find("vic");
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->SerializeAsString(), made->token.SerializeAsString());
  EXPECT_EQ(kept->max_disk_bytes(), int64_t{1} << 40);
  EXPECT_EQ(tokens_->Identify(made->secret)->role, v1::TOKEN_ROLE_VIEWER);
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(GetReason(tokens_->Identify(made->secret).status()), "TOKEN_EXPIRED");
}

}  // namespace
}  // namespace tandem
