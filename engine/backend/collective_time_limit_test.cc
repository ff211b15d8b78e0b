#include "engine/backend/collective_time_limit.h"

#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class CollectiveTimeLimitTest : public testing::Test {
 protected:
  CollectiveTimeLimitTest() { unsetenv("TANDEM_COLLECTIVE_TIME_LIMIT"); }
  ~CollectiveTimeLimitTest() override { unsetenv("TANDEM_COLLECTIVE_TIME_LIMIT"); }
  static absl::StatusOr<absl::Duration> With(const char* text) {
    setenv("TANDEM_COLLECTIVE_TIME_LIMIT", text, /*overwrite=*/1);
    return CollectiveTimeLimit();
  }
};

TEST_F(CollectiveTimeLimitTest, IsWhatTheEnvironmentSays) {
  EXPECT_EQ(*CollectiveTimeLimit(), absl::Minutes(30));
  EXPECT_EQ(*With("90s"), absl::Seconds(90));
  EXPECT_EQ(*With("1h30m"), absl::Minutes(90));
  EXPECT_EQ(*With("1s"), absl::Seconds(1));
  EXPECT_EQ(*With("24h"), absl::Hours(24));
  // A service file may name the variable without a value.
  EXPECT_EQ(*With(""), absl::Minutes(30));
}

// A wrong value is an error. It never becomes the default or an endless wait.
TEST_F(CollectiveTimeLimitTest, WhatIsNoDurationWithinTheBoundsIsAnError) {
  for (const char* text :
       {" ", "90", "soon", "90 s", "0s", "-1s", "999ms", "24h0.001s", "1e9h", "1000000000h", "inf", "-inf"}) {
    const absl::StatusOr<absl::Duration> limit = With(text);
    ASSERT_EQ(limit.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(limit.status().message()),
                AllOf(HasSubstr("TANDEM_COLLECTIVE_TIME_LIMIT is '" + std::string(text) + "'"),
                      HasSubstr("a duration from 1s to 24h"), HasSubstr("such as 90s")));
  }
}

}  // namespace
}  // namespace tandem
