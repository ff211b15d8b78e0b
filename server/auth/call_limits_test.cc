#include "server/auth/call_limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/retry_delay.h"

namespace tandem {
namespace {

class CallLimitsTest : public testing::Test {
 protected:
  FakeClock clock_{absl::UnixEpoch() + absl::Hours(1)};
  UserQuota quota_;
  CallLimits limits_{[this](const std::string& user) { return user == "free" ? UserQuota() : quota_; },
                     &clock_};
};

TEST_F(CallLimitsTest, SoManyCallsASecondAndABurst) {
  quota_.calls_per_second = 2;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limits_.Admit("ann").ok()) << i;
  const absl::Status refused = limits_.Admit("ann");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(GetReason(refused), "CALL_RATE_EXCEEDED");
  EXPECT_EQ(GetRetryDelay(refused), absl::Milliseconds(500));
  EXPECT_TRUE(absl::StrContains(refused.message(), "--user-max-call-rate"));
  // Other users are not slowed down, and a user without a limit has none.
  EXPECT_TRUE(limits_.Admit("bob").ok());
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(limits_.Admit("free").ok());
  // After the given delay, the next call is admitted: refused calls use up nothing.
  clock_.Advance(absl::Milliseconds(500));
  EXPECT_TRUE(limits_.Admit("ann").ok());
  EXPECT_FALSE(limits_.Admit("ann").ok());
  clock_.Advance(absl::Hours(1));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limits_.Admit("ann").ok()) << i;
  EXPECT_FALSE(limits_.Admit("ann").ok());
}

TEST_F(CallLimitsTest, SoManyStreamsOfAUser) {
  quota_.max_streams = 2;
  std::vector<std::unique_ptr<CallLimits::Stream>> streams;
  for (int i = 0; i < 2; ++i) {
    auto stream = limits_.Open("ann");
    ASSERT_TRUE(stream.ok());
    streams.push_back(*std::move(stream));
  }
  const absl::Status refused = limits_.Open("ann").status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(GetReason(refused), "TOO_MANY_STREAMS");
  EXPECT_TRUE(GetRetryDelay(refused).has_value());
  EXPECT_TRUE(limits_.Open("bob").ok());
  streams.pop_back();
  EXPECT_TRUE(limits_.Open("ann").ok());
  EXPECT_TRUE(limits_.Open("ann").ok()) << "one that went still counts";
}

TEST(RateLimiterTest, ForgetsWhoHasRested) {
  FakeClock clock(absl::UnixEpoch());
  RateLimiter limiter(&clock);
  const RateLimiter::Rate rate = {1, 2};
  EXPECT_EQ(limiter.Take("a", rate), absl::ZeroDuration());
  for (int i = 0; i < 5000; ++i) {
    clock.Advance(absl::Seconds(1));
    EXPECT_EQ(limiter.Take(absl::StrCat("key", i), rate), absl::ZeroDuration());
  }
  // The bucket is full again, like a new bucket.
  EXPECT_EQ(limiter.Take("a", rate), absl::ZeroDuration());
  EXPECT_EQ(limiter.Take("a", rate), absl::ZeroDuration());
  EXPECT_EQ(limiter.Take("a", rate), absl::Seconds(1));
}

}  // namespace
}  // namespace tandem
