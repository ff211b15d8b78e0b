#include "server/jobs/lease_times.h"

#include <string>

#include "absl/time/time.h"
#include "engine/base/clock.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/jobs/settable_clock.h"

namespace tandem {
namespace {

using google::protobuf::Timestamp;
using google::protobuf::util::TimeUtil;

class LeaseTimesTest : public testing::Test {
 protected:
  Timestamp Now() const { return TimeUtil::MicrosecondsToTimestamp(absl::ToUnixMicros(clock_.Now())); }
  // A job that gets its devices now.
  v1::Job Leased(const std::string& name = "jobs/a") const {
    v1::Job job;
    job.set_name(name);
    job.set_state(v1::JOB_STATE_STARTING);
    *job.mutable_lease_time() = Now();
    return job;
  }
  absl::Duration Held(const v1::Job& job) const { return leases_.Held(job, Now()); }

  FakeClock time_{absl::FromUnixSeconds(1700000000)};
  SettableClock clock_{&time_};
  LeaseTimes leases_{&clock_};
};

TEST_F(LeaseTimesTest, WhatTheClockIsSetByIsNoTime) {
  const v1::Job job = Leased();
  leases_.Begin(job);
  EXPECT_EQ(Held(job), absl::ZeroDuration());
  time_.Advance(absl::Seconds(10));
  for (const absl::Duration ahead : {absl::Hours(24), -absl::Hours(24), absl::ZeroDuration()}) {
    clock_.Set(ahead);
    EXPECT_EQ(Held(job), absl::Seconds(10)) << ahead;
  }
}

TEST_F(LeaseTimesTest, OfAnEarlierDaemonsLeaseTheClocksWordIsTakenOnce) {
  const v1::Job job = Leased();
  time_.Advance(absl::Seconds(10));
  leases_.Begin(job);
  clock_.Set(absl::Hours(24));
  time_.Advance(absl::Seconds(5));
  EXPECT_EQ(Held(job), absl::Seconds(15));
}

TEST_F(LeaseTimesTest, ALeaseOfTheFutureBeginsNow) {
  const v1::Job job = Leased();
  clock_.Set(-absl::Hours(24));
  leases_.Begin(job);
  EXPECT_EQ(Held(job), absl::ZeroDuration());
  time_.Advance(absl::Seconds(5));
  EXPECT_EQ(Held(job), absl::Seconds(5));
}

TEST_F(LeaseTimesTest, OfWhatItDoesNotKnowItSaysWhatTheClockSays) {
  const v1::Job job = Leased();
  time_.Advance(absl::Seconds(10));
  EXPECT_EQ(Held(job), absl::Seconds(10));
  clock_.Set(-absl::Hours(24));
  EXPECT_EQ(Held(job), absl::ZeroDuration());
}

TEST_F(LeaseTimesTest, AnotherLeaseOfTheJobIsNotTheOneThatIsAskedFor) {
  const v1::Job first = Leased();
  leases_.Begin(first);
  time_.Advance(absl::Seconds(10));
  leases_.Begin(Leased());
  time_.Advance(absl::Seconds(5));
  EXPECT_EQ(Held(first), absl::Seconds(15));
}

TEST_F(LeaseTimesTest, TheEndOfALeaseDoesNotForgetALaterOne) {
  const v1::Job first = Leased();
  leases_.Begin(first);
  time_.Advance(absl::Seconds(10));
  const v1::Job second = Leased();
  leases_.Begin(second);
  leases_.Forget(first);
  clock_.Set(absl::Hours(24));
  time_.Advance(absl::Seconds(5));
  EXPECT_EQ(Held(second), absl::Seconds(5));
  leases_.Forget(second);
  EXPECT_EQ(Held(second), absl::Seconds(5) + absl::Hours(24));
}

TEST_F(LeaseTimesTest, WhatWasHeldForNothingIsForgotten) {
  v1::Job job = Leased();
  const v1::Job leased = job;
  leases_.Begin(job);
  job.clear_lease_time();
  leases_.Forget(job);
  clock_.Set(absl::Hours(24));
  EXPECT_EQ(Held(leased), absl::Hours(24));
}

TEST_F(LeaseTimesTest, NothingIsKeptOfADeletedJob) {
  const v1::Job job = Leased();
  const v1::Job other = Leased("jobs/b");
  leases_.Begin(job);
  leases_.Begin(other);
  leases_.Remove(job.name());
  clock_.Set(absl::Hours(24));
  EXPECT_EQ(Held(job), absl::Hours(24));
  EXPECT_EQ(Held(other), absl::ZeroDuration());
}

}  // namespace
}  // namespace tandem
