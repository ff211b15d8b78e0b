#include "server/jobs/clock_watch.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/base/faulty_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kTenYears = absl::Hours(24 * 3650);

// A machine's clocks.
class MachineClock : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  absl::Duration Elapsed() const override { return elapsed_; }
  void Pass(absl::Duration time) {
    now_ += time;
    elapsed_ += time;
  }
  void SetBy(absl::Duration step) { now_ += step; }
  void SetTo(absl::Time now) { now_ = now; }
  void BeOff(absl::Duration time) {
    now_ += time;
    elapsed_ = absl::Seconds(20);
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1700000000);
  absl::Duration elapsed_ = absl::Hours(100);
};

class ClockWatchTest : public testing::Test {
 protected:
  ClockWatch Watch(const std::string& boot = "boot") {
    return ClockWatch({.path = "/state/clock", .boot_id = boot, .longest_age = longest_age_, .env = &env_},
                      &clock_);
  }
  static absl::Duration AgeOf(absl::Time stamp, ClockWatch* watch) {
    const absl::Duration known = watch->Look();
    return known - watch->KnownAt(stamp);
  }

  FaultyEnv env_;
  MachineClock clock_;
  absl::Duration longest_age_ = absl::InfiniteDuration();
};

TEST_F(ClockWatchTest, TimeThatGoesByCounts) {
  ClockWatch watch = Watch();
  const absl::Time before = clock_.Now() - kDay;
  watch.Look();
  const absl::Time stamp = clock_.Now();
  for (int i = 1; i <= 100; ++i) {
    clock_.Pass(kDay);
    EXPECT_EQ(AgeOf(stamp, &watch), i * kDay);
    EXPECT_EQ(watch.news(), "");
  }
  // Before the first watch, the clock is trusted.
  EXPECT_EQ(AgeOf(before, &watch), 101 * kDay);
  EXPECT_EQ(AgeOf(absl::InfinitePast(), &watch), absl::InfiniteDuration());
}

TEST_F(ClockWatchTest, WhatTheClockWasSetByDoesNotCount) {
  ClockWatch watch = Watch();
  watch.Look();
  const absl::Time stamp = clock_.Now();
  clock_.Pass(2 * kDay);
  clock_.SetBy(kTenYears);
  EXPECT_EQ(AgeOf(stamp, &watch), 2 * kDay);
  EXPECT_THAT(watch.news(), HasSubstr("set ahead by 87600h"));
  clock_.Pass(kDay);
  const absl::Time ahead = clock_.Now();
  clock_.Pass(kDay);
  EXPECT_EQ(AgeOf(stamp, &watch), 4 * kDay);
  EXPECT_EQ(AgeOf(ahead, &watch), kDay);
  EXPECT_EQ(watch.news(), "");
  clock_.SetBy(-kTenYears);
  EXPECT_EQ(AgeOf(stamp, &watch), 4 * kDay);
  EXPECT_THAT(watch.news(), HasSubstr("set back by 87600h"));
  EXPECT_EQ(AgeOf(ahead, &watch), kDay);
  // The clock has not reached this time yet.
  EXPECT_EQ(AgeOf(clock_.Now() + 100 * kDay, &watch), -100 * kDay);
}

TEST_F(ClockWatchTest, SmallStepsAddUp) {
  ClockWatch watch = Watch();
  watch.Look();
  const absl::Time stamp = clock_.Now();
  for (int i = 0; i < 7 * 24 * 6; ++i) {
    clock_.Pass(absl::Minutes(10));
    clock_.SetBy(absl::Milliseconds(900));
    watch.Look();
  }
  EXPECT_LE(AgeOf(stamp, &watch), 7 * kDay);
  // The timestamp is within an hour of a step.
  EXPECT_GE(AgeOf(stamp, &watch), 7 * kDay - absl::Hours(1));
}

TEST_F(ClockWatchTest, OfTimesThatTheClockShowedTwiceTheLaterOneHolds) {
  ClockWatch watch = Watch();
  watch.Look();
  clock_.Pass(2 * kDay);
  clock_.SetBy(-2 * kDay);
  watch.Look();
  clock_.Pass(kDay);
  const absl::Time stamp = clock_.Now();
  clock_.Pass(kDay);
  EXPECT_EQ(AgeOf(stamp, &watch), kDay);
}

// Some waits end at a time of the clock, so they last longer if the clock is set back.
TEST_F(ClockWatchTest, WhatEndsBeforeALateLookIsNotOlderThanItIs) {
  for (const absl::Duration after : {absl::Minutes(1), absl::Hours(1), absl::Hours(30), 3 * kDay}) {
    SCOPED_TRACE(after);
    clock_ = MachineClock();
    env_.RemoveFile("/state/clock").IgnoreError();
    std::optional<ClockWatch> watch(Watch());
    watch->Look();
    clock_.SetBy(3 * kDay);
    watch->Look();
    clock_.Pass(10 * kDay);
    watch->Look();
    // The clock is right again, and nobody looks for three days.
    clock_.SetBy(-3 * kDay);
    clock_.Pass(after);
    const absl::Time stamp = clock_.Now();
    clock_.Pass(3 * kDay - after);
    const absl::Duration age = AgeOf(stamp, &*watch);
    EXPECT_LE(age, 3 * kDay - after);
    EXPECT_GE(age, absl::ZeroDuration());
    // The next process knows as much.
    clock_.Pass(10 * kDay);
    watch->Look(/*last=*/true);
    watch.emplace(Watch());
    EXPECT_EQ(AgeOf(stamp, &*watch), age + 10 * kDay);
  }
}

TEST_F(ClockWatchTest, WithinABootTimeCountsThoughNobodyWatched) {
  Watch().Look();
  const absl::Time stamp = clock_.Now();
  clock_.Pass(30 * kDay);
  clock_.SetBy(kTenYears);
  ClockWatch next = Watch();
  EXPECT_EQ(AgeOf(stamp, &next), 30 * kDay);
  // Another container on the same boot, with a longer uptime.
  clock_.Pass(kTenYears);
  clock_.SetBy(-kTenYears);
  ClockWatch other = Watch();
  EXPECT_EQ(AgeOf(stamp, &other), 30 * kDay);
}

TEST_F(ClockWatchTest, OverARebootTimeDoesNotCount) {
  absl::Time stamp;
  {
    ClockWatch first = Watch("first");
    first.Look();
    stamp = clock_.Now();
    clock_.Pass(kDay);
    first.Look(/*last=*/true);
  }
  clock_.BeOff(2 * kDay);
  {
    ClockWatch second = Watch("second");
    EXPECT_EQ(AgeOf(stamp, &second), kDay);
    EXPECT_THAT(second.news(), HasSubstr("by 48h to 2023-11-17"));
    EXPECT_THAT(second.news(), HasSubstr("reboot"));
    clock_.Pass(kDay);
    second.Look();
    clock_.Pass(absl::Minutes(4));
  }
  // Times after the last look in the file count as no older than that look.
  env_.CutPower();
  const absl::Time unseen = clock_.Now();
  clock_.BeOff(absl::Minutes(1));
  ClockWatch third = Watch("third");
  EXPECT_EQ(AgeOf(unseen, &third), absl::ZeroDuration());
  EXPECT_EQ(AgeOf(stamp, &third), 2 * kDay);
  // Without boot ids, no two boots are known to be the same.
  Watch("").Look();
  clock_.Pass(kDay);
  ClockWatch last = Watch("");
  EXPECT_EQ(AgeOf(stamp, &last), 2 * kDay);
}

TEST_F(ClockWatchTest, OffEachWeekendItsDaysCount) {
  longest_age_ = 10 * kDay;
  std::vector<absl::Time> stamps;
  size_t largest = 0;
  for (int week = 0; week < 100; ++week) {
    ClockWatch watch = Watch(absl::StrCat(week));
    watch.Look();
    stamps.push_back(clock_.Now());
    for (int day = 0; day < 5; ++day) {
      clock_.Pass(kDay);
      watch.Look(/*last=*/day == 4);
    }
    for (int before = 0; before <= week; ++before) {
      const absl::Duration age = AgeOf(stamps[before], &watch);
      if (week - before < 2) {
        EXPECT_EQ(age, (week - before + 1) * 5 * kDay);
      } else {
        EXPECT_GE(age, longest_age_);
      }
    }
    largest = std::max(largest, env_.ReadFile("/state/clock")->size());
    clock_.BeOff(2 * kDay);
  }
  // Marks that are too old are forgotten.
  EXPECT_LT(largest, 500);
}

// The clock starts with 1970 at each boot and is set when the network is up.
TEST_F(ClockWatchTest, AMachineWithoutAClockOfItsOwnIsNotAlwaysNew) {
  absl::Time stamp;
  for (int week = 0; week < 10; ++week) {
    ClockWatch watch = Watch(absl::StrCat(week));
    const absl::Time right = clock_.Now();
    clock_.SetTo(absl::UnixEpoch() + absl::Seconds(20));
    watch.Look();
    clock_.SetTo(right);
    watch.Look();
    clock_.Pass(kDay);
    if (week == 0) stamp = clock_.Now();
    clock_.Pass(kDay);
    EXPECT_EQ(AgeOf(stamp, &watch), kDay + week * 2 * kDay);
    watch.Look(/*last=*/true);
    clock_.BeOff(2 * kDay);
  }
}

// Random events. An age that is too large would delete a job too early.
TEST_F(ClockWatchTest, NothingIsOlderThanItIs) {
  std::mt19937 random(1);
  const auto up_to = [&](absl::Duration most) {
    return absl::Seconds(2) + most * std::uniform_real_distribution<double>(0, 1)(random);
  };
  struct Ended {
    absl::Time stamp;
    absl::Duration at;
  };
  for (int run = 0; run < 30; ++run) {
    if (run > 0) {
      ASSERT_TRUE(env_.RemoveFile("/state/clock").ok());
    }
    clock_ = MachineClock();
    env_.RemoveFile("/state/clock").IgnoreError();
    std::vector<Ended> ended;
    // The real time, which also passes while the machine is off.
    absl::Duration time;
    int boot = 0;
    const auto end = [&] { ended.push_back({clock_.Now(), time}); };
    const auto pass = [&](absl::Duration by) {
      clock_.Pass(by);
      time += by;
    };
    std::optional<ClockWatch> watch;
    watch.emplace(Watch("0"));
    watch->Look();
    for (int i = 0; i < 60; ++i) {
      pass(up_to(absl::Minutes(9)));
      end();
      switch (random() % 6) {
        case 0:
          clock_.SetBy(up_to(random() % 2 == 0 ? absl::Minutes(20) : 30 * kDay));
          break;
        case 1:
          clock_.SetBy(-up_to(random() % 2 == 0 ? absl::Minutes(20) : 30 * kDay));
          break;
        case 2: {
          watch->Look(/*last=*/random() % 2 == 0);
          const absl::Duration off = up_to(random() % 2 == 0 ? absl::Minutes(20) : 3 * kDay);
          clock_.BeOff(off);
          time += off;
          if (random() % 2 == 0) clock_.SetBy(up_to(kDay));
          watch.emplace(Watch(absl::StrCat(++boot)));
          break;
        }
        case 3:
          watch.emplace(Watch(absl::StrCat(boot)));
          break;
        default:
          for (int look = 0; look < 20; ++look) {
            pass(up_to(absl::Minutes(9)));
            watch->Look();
          }
      }
      pass(up_to(absl::Minutes(1)));
      end();
      watch->Look();
      for (const Ended& job : ended) {
        // A future timestamp comes from a clock that was ahead.
        ASSERT_LE(AgeOf(job.stamp, &*watch), time - job.at + absl::Seconds(1))
            << "run " << run << ", event " << i;
      }
    }
  }
}

TEST_F(ClockWatchTest, WhatNoWatchHasWrittenIsNotBelieved) {
  const absl::Time before = clock_.Now() - 30 * kDay;
  {
    ClockWatch watch = Watch();
    watch.Look();
    clock_.SetBy(kDay);
    watch.Look(/*last=*/true);
  }
  const std::string written = *env_.ReadFile("/state/clock");
  const std::vector<std::string> lines = absl::StrSplit(written, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 6) << written;
  const auto with = [&](size_t line, const std::string& text) {
    std::vector<std::string> changed = lines;
    changed[line] = text;
    return absl::StrJoin(changed, "\n");
  };
  const std::vector<std::string> wrong = {
      with(2, "elapsed=inf"),
      with(3, "known=inf"),
      with(3, "known=-inf"),
      with(3, "known=9000000h"),
      with(5, "mark=2020-01-01T00:00:00+00:00 0 1h"),
      with(5, lines[4]),
      with(5, "mark="),
      written.substr(0, written.rfind(' ')),
      written.substr(0, written.size() - 3),
  };
  for (const std::string& content : wrong) {
    SCOPED_TRACE(content);
    ASSERT_TRUE(WriteFileAtomically(&env_, "/state/clock", [&](WritableFile& file) {
                  return file.Append(content);
                }).ok());
    ClockWatch watch = Watch();
    EXPECT_EQ(AgeOf(before, &watch), absl::ZeroDuration());
    EXPECT_THAT(watch.news(), HasSubstr("cannot be read"));
  }
}

TEST_F(ClockWatchTest, WithoutItsFileItTakesNothingForOld) {
  Watch().Look();
  ASSERT_TRUE(WriteFileAtomically(&env_, "/state/clock", [](WritableFile& file) {
                return file.Append("seen=yesterday\n");
              }).ok());
  ClockWatch watch = Watch();
  const absl::Time before = clock_.Now() - 30 * kDay;
  EXPECT_EQ(AgeOf(before, &watch), absl::ZeroDuration());
  EXPECT_THAT(watch.news(), HasSubstr("/state/clock cannot be read"));
  // The file is whole again.
  clock_.Pass(kDay);
  ClockWatch next = Watch();
  EXPECT_EQ(AgeOf(before, &next), kDay);
  EXPECT_EQ(next.news(), "");
}

TEST_F(ClockWatchTest, AFullDiskStopsNobody) {
  ClockWatch watch = Watch();
  const absl::Time stamp = clock_.Now();
  env_.FailAfter(0, absl::ResourceExhaustedError("full"));
  watch.Look();
  clock_.Pass(kDay);
  clock_.SetBy(kTenYears);
  EXPECT_EQ(AgeOf(stamp, &watch), kDay);
}

}  // namespace
}  // namespace tandem
