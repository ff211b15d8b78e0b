#include "server/jobs/job_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/jobs/settable_clock.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr absl::Duration kKeep = absl::Hours(24);
// Longer than the retention pauses between two batches.
constexpr absl::Duration kBetween = absl::Minutes(2);

class JobRetentionTest : public testing::Test {
 protected:
  JobRetentionTest() { jobs_.machine().AddObserver(&retention_); }
  // It hears of jobs on the store's writer thread.
  ~JobRetentionTest() override {
    retention_.Stop();
    jobs_.store().Close();
  }

  std::string Ended(const std::string& name) {
    const std::string id = jobs_.NewJob(name);
    EXPECT_TRUE(jobs_.Cancel(id).ok());
    return id;
  }
  // A job that begins with another one's model.
  std::string JobFrom(const std::string& id) {
    JobMachine::NewJob job;
    job.spec.set_name("next");
    job.spec.mutable_initial_weights()->mutable_artifact()->set_job(JobName(id));
    const absl::StatusOr<v1::Job> made = jobs_.Create(std::move(job));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? JobId(made->name()) : "";
  }
  StoredSweep Sweep(int jobs) {
    JobMachine::NewSweep sweep;
    sweep.sweep.set_display_name("search");
    for (int i = 0; i < jobs; ++i) sweep.jobs.emplace_back().spec.set_name("small");
    Awaited<absl::StatusOr<StoredSweep>> done;
    jobs_.machine().CreateSweep(std::move(sweep), done.Done());
    absl::StatusOr<StoredSweep> made = done.Get();
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *std::move(made) : StoredSweep();
  }
  bool Exists(const std::string& id) { return jobs_.machine().Get(id).ok(); }

  void Advance(absl::Duration by) {
    jobs_.clock().Advance(by);
    retention_.Wake();
  }
  // Waits until so many were deleted, and takes their names. A job that is not to be deleted is known to be
  // kept when one that is considered after it was deleted.
  std::vector<std::string> TakeDeleted(size_t count) {
    MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return deleted_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Minutes(1)));
    return std::exchange(deleted_, {});
  }

  // Notes what is deleted, and when by `clock` where it is given; anything else is a failure of the test.
  JobRetention::Listener NoteDeleted(const Clock* clock = nullptr) {
    JobRetention::Listener listener;
    listener.deleted = [this, clock](const std::string& name) {
      MutexLock lock(&mutex_);
      deleted_.push_back(name);
      if (clock != nullptr) deleted_at_.push_back(clock->Now());
    };
    listener.failed = [](int64_t, const std::string& first, const absl::Status& why) {
      ADD_FAILURE() << first << ": " << why;
    };
    listener.began_anew = [](const std::string& why) { ADD_FAILURE() << why; };
    return listener;
  }
  // As that, and counts how often the time begins anew.
  JobRetention::Listener NoteBegun(const Clock* clock) {
    JobRetention::Listener listener = NoteDeleted(clock);
    listener.began_anew = [this](const std::string&) {
      MutexLock lock(&mutex_);
      ++begun_;
    };
    return listener;
  }
  void AwaitBegun(int count) {
    MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return begun_ >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Minutes(1)));
  }
  absl::Time FirstDeletedAt() {
    MutexLock lock(&mutex_);
    return deleted_at_.empty() ? absl::InfiniteFuture() : deleted_at_.front();
  }

  Mutex mutex_;
  std::vector<absl::Time> deleted_at_ ABSL_GUARDED_BY(mutex_);
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> deleted_ ABSL_GUARDED_BY(mutex_);
  JobMachineFixture jobs_;
  JobRetention retention_{&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), NoteDeleted()};
};

TEST_F(JobRetentionTest, DeletesWhatEndedLongAgoAndNothingElse) {
  retention_.Start();
  const std::string first = Ended("first");
  const std::string running = jobs_.NewJob("waits");
  jobs_.clock().Advance(absl::Hours(1));
  const std::string second = Ended("second");
  Advance(kKeep - absl::Hours(1));
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(first)));
  EXPECT_TRUE(Exists(second));
  const absl::StatusOr<bool> was = jobs_.machine().WasDeleted(first);
  EXPECT_TRUE(was.ok() && *was);
  Advance(absl::Hours(1));
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(second)));
  EXPECT_TRUE(Exists(running));
}

TEST_F(JobRetentionTest, FindsWhatEndedBeforeItCame) {
  std::vector<std::string> names;
  // More than a batch.
  for (int i = 0; i < 20; ++i) names.push_back(JobName(Ended(absl::StrCat("job-", i))));
  Advance(2 * kKeep);
  JobRetention later(&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), NoteDeleted());
  later.Start();
  std::vector<std::string> deleted = TakeDeleted(16);
  // The rest comes after a pause.
  EXPECT_THAT(deleted, SizeIs(16));
  jobs_.clock().Advance(kBetween);
  later.Wake();
  for (std::string& name : TakeDeleted(4)) deleted.push_back(std::move(name));
  EXPECT_THAT(deleted, testing::UnorderedElementsAreArray(names));
}

// Which does not know whether they went on since the backup, and when they ended.
TEST_F(JobRetentionTest, AfterARestorationTheTimeBeginsAnew) {
  const std::string job = Ended("job");
  jobs_.clock().Advance(2 * kKeep);
  const absl::Time restored = jobs_.clock().Now();
  JobRetention later(&jobs_.machine(), {.keep = kKeep, .restored = restored}, &jobs_.clock(),
                     NoteDeleted(&jobs_.clock()));
  later.Start();
  jobs_.clock().Advance(kKeep - absl::Seconds(1));
  later.Wake();
  EXPECT_TRUE(Exists(job));
  jobs_.clock().Advance(absl::Seconds(1));
  later.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(job)));
  later.Stop();
  EXPECT_EQ(FirstDeletedAt(), restored + kKeep);
}

// By a clock that is right again nothing may be gone before its time.
TEST_F(JobRetentionTest, AClockThatIsSetAheadDeletesNothingBeforeItsTime) {
  const std::string job = Ended("job");
  SettableClock clock(&jobs_.clock());
  JobRetention later(&jobs_.machine(), {.keep = kKeep}, &clock, NoteBegun(&clock));
  later.Start();
  jobs_.clock().Advance(absl::Hours(1));
  clock.Set(absl::Hours(24 * 3650));
  const absl::Time jumped = clock.Now();
  later.Wake();
  AwaitBegun(1);
  jobs_.clock().Advance(kKeep - absl::Seconds(1));
  later.Wake();
  EXPECT_TRUE(Exists(job));
  jobs_.clock().Advance(absl::Seconds(1));
  later.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(job)));
  later.Stop();
  EXPECT_EQ(FirstDeletedAt(), jumped + kKeep);
}

TEST_F(JobRetentionTest, AfterAClockWasSetBackJobsAreDeletedAgain) {
  const std::string job = Ended("job");
  SettableClock clock(&jobs_.clock());
  JobRetention later(&jobs_.machine(), {.keep = kKeep}, &clock, NoteBegun(&clock));
  later.Start();
  clock.Set(absl::Hours(24 * 3650));
  later.Wake();
  AwaitBegun(1);
  clock.Set(absl::ZeroDuration());
  const absl::Time back = clock.Now();
  later.Wake();
  AwaitBegun(2);
  jobs_.clock().Advance(kKeep);
  later.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(job)));
  later.Stop();
  EXPECT_EQ(FirstDeletedAt(), back + kKeep);
}

TEST_F(JobRetentionTest, AClockThatWasSetAheadWhileNobodyWatchedDeletesNothingBeforeItsTime) {
  const std::string job = Ended("job");
  const TemporaryFolder folder;
  const JobRetention::Options options = {.keep = kKeep, .clock_file = folder.path() + "/clock"};
  SettableClock clock(&jobs_.clock());
  {
    JobRetention first(&jobs_.machine(), options, &clock, NoteDeleted());
    first.Start();
    first.Stop();
  }
  clock.Set(absl::Hours(24 * 3650));
  const absl::Time jumped = clock.Now();
  {
    JobRetention second(&jobs_.machine(), options, &clock, NoteBegun(&clock));
    second.Start();
    AwaitBegun(1);
    jobs_.clock().Advance(kKeep / 2);
    second.Stop();
  }
  EXPECT_TRUE(Exists(job));
  // Whose daemon was not away for long.
  JobRetention third(&jobs_.machine(), {.keep = kKeep, .clock_file = folder.path() + "/clock"}, &clock,
                     NoteDeleted(&clock));
  third.Start();
  jobs_.clock().Advance(kKeep / 2);
  third.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(job)));
  third.Stop();
  EXPECT_EQ(FirstDeletedAt(), jumped + kKeep);
}

// As on a full disk, where every one of them fails.
TEST_F(JobRetentionTest, WhatCannotBeDeletedIsToldOnce) {
  int64_t failed = 0;
  int told = 0;
  std::string first;
  JobRetention::Listener listener = NoteDeleted();
  listener.failed = [&](int64_t count, const std::string& name, const absl::Status& why) {
    EXPECT_FALSE(why.ok());
    MutexLock lock(&mutex_);
    ++told;
    failed += count;
    first = name;
  };
  JobRetention later(&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), std::move(listener));
  jobs_.machine().AddObserver(&later);
  later.Start();
  // It reads all jobs at first.
  const std::string before = Ended("before");
  jobs_.clock().Advance(kKeep);
  later.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(before)));
  std::vector<std::string> names;
  for (int i = 0; i < 10; ++i) names.push_back(JobName(Ended(absl::StrCat("job-", i))));
  jobs_.store().Close();
  jobs_.clock().Advance(kKeep);
  later.Wake();
  {
    MutexLock lock(&mutex_);
    const auto is_told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return told > 0; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&is_told), absl::Minutes(1)));
  }
  later.Stop();
  MutexLock lock(&mutex_);
  EXPECT_EQ(told, 1);
  EXPECT_EQ(failed, 10);
  EXPECT_THAT(names, testing::Contains(first));
}

TEST_F(JobRetentionTest, KeepsWhatAnUnfinishedJobBeginsWith) {
  retention_.Start();
  const std::string source = Ended("source");
  const std::string next = JobFrom(source);
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string other = Ended("other");
  Advance(2 * kKeep);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(other)));
  EXPECT_TRUE(Exists(source));
  ASSERT_TRUE(jobs_.Cancel(next).ok());
  Advance(kBetween);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(source)));
  EXPECT_TRUE(Exists(next));
}

TEST_F(JobRetentionTest, CountsFromTheLastEndOfAResumedJob) {
  retention_.Start();
  const std::string id = jobs_.NewJob("fails");
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), Finished(2, v1::JOB_STATE_FAILED)}).ok());
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string other = Ended("other");
  jobs_.clock().Advance(kKeep / 2);
  ASSERT_TRUE(jobs_.Resume(id).ok());
  Advance(kKeep / 2);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(other)));
  EXPECT_TRUE(Exists(id));
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  jobs_.clock().Advance(kKeep / 2);
  const std::string last = Ended("last");
  Advance(kKeep / 2);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(id)));
  EXPECT_TRUE(Exists(last));
}

TEST_F(JobRetentionTest, ASweepGoesAsAWhole) {
  retention_.Start();
  const StoredSweep sweep = Sweep(2);
  ASSERT_THAT(sweep.jobs, SizeIs(2));
  const std::string first = JobId(sweep.jobs[0].job.name());
  const std::string second = JobId(sweep.jobs[1].job.name());
  ASSERT_TRUE(jobs_.Cancel(first).ok());
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string other = Ended("other");
  Advance(2 * kKeep);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(other)));
  EXPECT_TRUE(Exists(first));
  ASSERT_TRUE(jobs_.Cancel(second).ok());
  Advance(kKeep + kBetween);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(sweep.sweep.name()));
  EXPECT_FALSE(Exists(first));
  EXPECT_FALSE(Exists(second));
  EXPECT_TRUE(absl::IsNotFound(jobs_.machine().GetSweep(SweepId(sweep.sweep.name())).status()));
}

TEST_F(JobRetentionTest, WhatSomebodyElseDeletedIsNoError) {
  retention_.Start();
  const std::string gone = Ended("gone");
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string other = Ended("other");
  ASSERT_TRUE(jobs_.Delete(gone).ok());
  Advance(2 * kKeep);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(other)));
}

TEST_F(JobRetentionTest, StopsWhetherItBeganOrNot) {
  retention_.Stop();
  JobRetention other(&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), NoteDeleted());
  other.Start();
  other.Stop();
  other.Stop();
}

}  // namespace
}  // namespace tandem
