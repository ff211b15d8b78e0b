#include "server/jobs/clock_watch.h"

#include <string>

#include "engine/base/faulty_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/settable_clock.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTolerance = absl::Hours(2);

class ClockWatchTest : public testing::Test {
 protected:
  ClockWatch Watch() {
    return ClockWatch({.path = "/state/clock", .tolerance = kTolerance, .env = &env_}, &clock_);
  }

  FaultyEnv env_;
  FakeClock time_{absl::FromUnixSeconds(1700000000)};
  SettableClock clock_{&time_};
};

TEST_F(ClockWatchTest, TimeThatGoesByIsNoJump) {
  ClockWatch watch = Watch();
  EXPECT_EQ(watch.Look(), clock_.Now());
  for (int i = 0; i < 100; ++i) {
    time_.Advance(absl::Hours(24));
    EXPECT_EQ(watch.Look(), clock_.Now());
    EXPECT_EQ(watch.jumped(), absl::InfinitePast());
    EXPECT_EQ(watch.news(), "");
  }
}

TEST_F(ClockWatchTest, AClockThatIsSetAheadHasJumped) {
  ClockWatch watch = Watch();
  watch.Look();
  clock_.Set(kTolerance);
  watch.Look();
  EXPECT_EQ(watch.jumped(), absl::InfinitePast());
  // In small steps, too.
  clock_.Set(kTolerance + absl::Seconds(1));
  const absl::Time first = watch.Look();
  EXPECT_EQ(watch.jumped(), first);
  EXPECT_THAT(watch.news(), HasSubstr("set ahead by 2h1s"));
  time_.Advance(absl::Hours(1));
  watch.Look();
  EXPECT_EQ(watch.jumped(), first);
  EXPECT_EQ(watch.news(), "");
  clock_.Set(absl::Hours(24 * 3650));
  absl::Time now = watch.Look();
  EXPECT_EQ(watch.jumped(), now);
  EXPECT_GT(watch.jumped(), first);
}

TEST_F(ClockWatchTest, WhereItIsSetBackTheJumpIsNotInTheFuture) {
  ClockWatch watch = Watch();
  watch.Look();
  clock_.Set(absl::Hours(24 * 3650));
  watch.Look();
  clock_.Set(absl::ZeroDuration());
  const absl::Time back = watch.Look();
  EXPECT_EQ(watch.jumped(), back);
  EXPECT_THAT(watch.news(), HasSubstr("set back"));
  // What is stamped with a time of long ago may be from just now.
  clock_.Set(-absl::Hours(24 * 3650));
  watch.Look();
  time_.Advance(absl::Hours(1));
  clock_.Set(absl::ZeroDuration());
  watch.Look();
  EXPECT_EQ(watch.jumped(), back + absl::Hours(1));
}

TEST_F(ClockWatchTest, TheNextOneKnowsWhatTheOneBeforeSaw) {
  {
    ClockWatch first = Watch();
    first.Look();
    time_.Advance(absl::Hours(240));
    first.Look(/*last=*/true);
  }
  {
    time_.Advance(kTolerance);
    ClockWatch soon = Watch();
    soon.Look();
    EXPECT_EQ(soon.jumped(), absl::InfinitePast());
  }
  absl::Time jumped;
  {
    clock_.Set(absl::Hours(24 * 3650));
    ClockWatch later = Watch();
    jumped = later.Look();
    EXPECT_EQ(later.jumped(), jumped);
    EXPECT_THAT(later.news(), HasSubstr("last seen"));
  }
  // And what that concluded, though the process died at once.
  env_.CutPower();
  time_.Advance(absl::Hours(1));
  ClockWatch last = Watch();
  last.Look();
  EXPECT_EQ(last.jumped(), jumped);
}

TEST_F(ClockWatchTest, WithoutItsFileItTakesNothingForOld) {
  Watch().Look();
  ASSERT_TRUE(WriteFileAtomically(&env_, "/state/clock", [](WritableFile& file) {
                return file.Append("seen=yesterday\n");
              }).ok());
  ClockWatch watch = Watch();
  absl::Time now = watch.Look();
  EXPECT_EQ(watch.jumped(), now);
  EXPECT_THAT(watch.news(), HasSubstr("/state/clock cannot be read"));
  // It is whole again.
  ClockWatch next = Watch();
  time_.Advance(absl::Seconds(1));
  next.Look();
  EXPECT_EQ(next.jumped(), watch.jumped());
}

TEST_F(ClockWatchTest, AFullDiskStopsNobody) {
  ClockWatch watch = Watch();
  env_.FailAfter(0, absl::ResourceExhaustedError("full"));
  watch.Look();
  clock_.Set(absl::Hours(24 * 3650));
  absl::Time now = watch.Look();
  EXPECT_EQ(watch.jumped(), now);
}

}  // namespace
}  // namespace tandem
