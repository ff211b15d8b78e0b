#include "server/clusters/slurm/slurm_text.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clusters/slurm/slurm_state.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SlurmTextTest, ReadsEveryFormOfADuration) {
  EXPECT_EQ(ParseSlurmDuration("5"), absl::Minutes(5));
  EXPECT_EQ(ParseSlurmDuration("30:00"), absl::Minutes(30));
  EXPECT_EQ(ParseSlurmDuration("0:07"), absl::Seconds(7));
  EXPECT_EQ(ParseSlurmDuration("1:02:03"), absl::Hours(1) + absl::Minutes(2) + absl::Seconds(3));
  EXPECT_EQ(ParseSlurmDuration("2-12"), absl::Hours(60));
  EXPECT_EQ(ParseSlurmDuration("2-12:30"), absl::Hours(60) + absl::Minutes(30));
  EXPECT_EQ(ParseSlurmDuration("1-00:00:01"), absl::Hours(24) + absl::Seconds(1));
  EXPECT_EQ(ParseSlurmDuration("365-00:00:00"), absl::Hours(24 * 365));
  EXPECT_EQ(ParseSlurmDuration("UNLIMITED"), absl::InfiniteDuration());
  EXPECT_EQ(ParseSlurmDuration("infinite"), absl::InfiniteDuration());
}

TEST(SlurmTextTest, NoDurationIsInvented) {
  for (const char* text : {"", "N/A", "n/a", "NOT_SET", "INVALID", "1:2:3:4", "1-", "-1", "1-2-3", "1:", ":1",
                           "1h", " 1", "1.5", "9999999999", "1-1:1:1:1"}) {
    EXPECT_EQ(ParseSlurmDuration(text), std::nullopt) << text;
  }
}

TEST(SlurmTextTest, WritesADuration) {
  EXPECT_EQ(FormatSlurmDuration(absl::Seconds(59)), "0-00:00:59");
  EXPECT_EQ(FormatSlurmDuration(absl::Milliseconds(59001)), "0-00:01:00");
  EXPECT_EQ(FormatSlurmDuration(absl::Hours(49) + absl::Minutes(2) + absl::Seconds(3)), "2-01:02:03");
  EXPECT_EQ(FormatSlurmDuration(absl::InfiniteDuration()), "UNLIMITED");
}

TEST(SlurmTextTest, DurationsSurviveTheWay) {
  for (const int seconds : {1, 60, 3599, 86399, 86400, 8640001}) {
    EXPECT_EQ(ParseSlurmDuration(FormatSlurmDuration(absl::Seconds(seconds))), absl::Seconds(seconds));
  }
}

TEST(SlurmTextTest, ReadsTimesInUtc) {
  EXPECT_EQ(ParseSlurmTime("2026-11-28T05:00:07"),
            absl::FromCivil(absl::CivilSecond(2026, 11, 28, 5, 0, 7), absl::UTCTimeZone()));
  for (const char* text : {"", "N/A", "Unknown", "NONE", "infinite-future", "05:00:07", "2026-13-28T05:00:07",
                           "2026-11-28 05:00:07"}) {
    EXPECT_EQ(ParseSlurmTime(text), std::nullopt) << text;
  }
}

TEST(SlurmTextTest, ExpandsHostLists) {
  EXPECT_THAT(*ParseSlurmHosts("n1"), ElementsAre("n1"));
  EXPECT_THAT(*ParseSlurmHosts("n[1-3,7],m4"), ElementsAre("n1", "n2", "n3", "n7", "m4"));
  EXPECT_THAT(*ParseSlurmHosts("gpu[08-11]"), ElementsAre("gpu08", "gpu09", "gpu10", "gpu11"));
  EXPECT_THAT(*ParseSlurmHosts("r[0-1]n[1-2]-x"), ElementsAre("r0n1-x", "r0n2-x", "r1n1-x", "r1n2-x"));
  EXPECT_THAT(*ParseSlurmHosts(""), IsEmpty());
  EXPECT_THAT(*ParseSlurmHosts("(null)"), IsEmpty());
}

TEST(SlurmTextTest, MalformedHostListsAreErrors) {
  for (const char* text : {"n[1-3", "n1]", "n[]", "n[a-b]", "n[3-1]", "n[1-]", ",", "n1,", "n[1-99999999]",
                           "n[0-999]m[0-999]", "n[[1]]"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ParseSlurmHosts(text).status())) << text;
  }
}

TEST(SlurmTextTest, CountsGpus) {
  EXPECT_EQ(CountSlurmGpus("(null)"), 0);
  EXPECT_EQ(CountSlurmGpus(""), 0);
  EXPECT_EQ(CountSlurmGpus("gpu:4"), 4);
  EXPECT_EQ(CountSlurmGpus("gpu"), 1);
  EXPECT_EQ(CountSlurmGpus("gpu:a100"), 1);
  EXPECT_EQ(CountSlurmGpus("gpu:a100:4(S:0,2),nic:3,gpu:v100:2(S:1)"), 6);
  EXPECT_EQ(CountSlurmGpus("nic:1,gpumem:8"), 0);
}

TEST(SlurmTextTest, DoublesPercentSigns) {
  EXPECT_EQ(EscapeSlurmPattern("/jobs/50%j/out"), "/jobs/50%%j/out");
}

TEST(SlurmStateTest, KnowsSlurmsStates) {
  EXPECT_EQ(ParseSlurmState("PENDING"), SlurmState::kPending);
  EXPECT_EQ(ParseSlurmState("CONFIGURING"), SlurmState::kPending);
  EXPECT_EQ(ParseSlurmState("NODE_FAIL"), SlurmState::kNodeFail);
  EXPECT_EQ(ParseSlurmState("BOOT_FAIL"), SlurmState::kNodeFail);
  EXPECT_EQ(ParseSlurmState("DEADLINE"), SlurmState::kTimeout);
  EXPECT_EQ(ParseSlurmState("BRAND_NEW"), SlurmState::kUnknown);
  EXPECT_EQ(ParseSlurmState(""), SlurmState::kUnknown);
}

TEST(SlurmStateTest, OnlyEndsAreEnds) {
  for (const SlurmState state : {SlurmState::kPending, SlurmState::kRunning, SlurmState::kCompleting,
                                 SlurmState::kSuspended, SlurmState::kUnknown}) {
    EXPECT_FALSE(IsEnd(state)) << SlurmStateName(state);
  }
  for (const SlurmState state :
       {SlurmState::kCompleted, SlurmState::kFailed, SlurmState::kCancelled, SlurmState::kTimeout,
        SlurmState::kPreempted, SlurmState::kNodeFail, SlurmState::kOutOfMemory}) {
    EXPECT_TRUE(IsEnd(state)) << SlurmStateName(state);
    EXPECT_EQ(ParseSlurmState(SlurmStateName(state)), state);
  }
  EXPECT_EQ(SlurmStateName(SlurmState::kUnknown), "UNKNOWN");
}

}  // namespace
}  // namespace tandem
