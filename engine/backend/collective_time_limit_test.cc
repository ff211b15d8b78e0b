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
}

// And never half an hour that nobody asked for.
TEST_F(CollectiveTimeLimitTest, WhatIsNoDurationIsAnError) {
  for (const char* text : {"", "90", "soon", "90 s", "0s", "-1s"}) {
    const absl::StatusOr<absl::Duration> limit = With(text);
    ASSERT_EQ(limit.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(limit.status().message()),
                AllOf(HasSubstr("TANDEM_COLLECTIVE_TIME_LIMIT is '" + std::string(text) + "'"),
                      HasSubstr("such as 90s")));
  }
}

}  // namespace
}  // namespace tandem
