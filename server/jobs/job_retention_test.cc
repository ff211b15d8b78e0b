#include "server/jobs/job_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "SQLiteCpp/SQLiteCpp.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "engine/base/mutex.h"
#include "server/jobs/job_machine_fixture.h"
#include "server/jobs/settable_clock.h"
#include "server/store/timestamps.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr absl::Duration kDay = absl::Hours(24);
// As long as nothing is deleted after a start.
constexpr absl::Duration kKeep = kDay;
// Longer than the pause between two batches.
constexpr absl::Duration kBetween = absl::Minutes(2);

class JobRetentionTest : public testing::Test {
 protected:
  JobRetentionTest() { jobs_.machine().AddObserver(&retention_); }
  // The observer must outlive the store's writer thread.
  ~JobRetentionTest() override {
    retention_.Stop();
    jobs_.store().Close();
  }

  std::string Ended(const std::string& name) {
    const std::string id = jobs_.NewJob(name);
    EXPECT_TRUE(jobs_.Cancel(id).ok());
    return id;
  }
  // Creates a job that starts from another job's model.
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
    v1::JobSpec spec;
    spec.set_name("small");
    for (int i = 0; i < jobs; ++i) sweep.jobs.emplace_back().spec = spec.SerializeAsString();
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
  // Blocks until `count` jobs were deleted, and returns their names. If a later job was deleted, an earlier
  // job is known to be kept.
  std::vector<std::string> TakeDeleted(size_t count) {
    MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return deleted_.size() >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Minutes(1)));
    return std::exchange(deleted_, {});
  }

  // Records the deletions and the last one's time. Any other call fails the test.
  JobRetention::Listener NoteDeleted() {
    JobRetention::Listener listener;
    listener.deleted = [this](const std::string& name) {
      MutexLock lock(&mutex_);
      deleted_.push_back(name);
      last_deleted_at_ = jobs_.clock().Now();
    };
    listener.failed = [](int64_t, const std::string& first, const absl::Status& why) {
      ADD_FAILURE() << first << ": " << why;
    };
    listener.clock_jumped = [](const std::string& what) { ADD_FAILURE() << what; };
    return listener;
  }
  // The same, and counts the news of the clock.
  JobRetention::Listener NoteNews() {
    JobRetention::Listener listener = NoteDeleted();
    listener.clock_jumped = [this](const std::string&) {
      MutexLock lock(&mutex_);
      ++news_;
    };
    return listener;
  }
  void AwaitNews(int count) {
    MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return news_ >= count; };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&enough), absl::Minutes(1)));
  }
  // Lets time pass, one pause between two batches after another, until the job is deleted.
  void AdvanceUntilDeleted(const std::string& id, JobRetention* retention) {
    for (int i = 0; i < 6000 && Exists(id); ++i) {
      jobs_.clock().Advance(kBetween);
      retention->Wake();
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_FALSE(Exists(id));
  }
  // Sets the clock, and blocks until the retention noticed the `count`-th change.
  void Set(SettableClock* clock, absl::Duration ahead, JobRetention* retention, int count) {
    clock->Set(ahead);
    retention->Wake();
    AwaitNews(count);
  }
  // Lets time pass until `at`, when `retention` must delete the job first.
  void ExpectDeletedAt(absl::Time at, const std::string& id, JobRetention* retention) {
    jobs_.clock().Advance(at - absl::Seconds(1) - jobs_.clock().Now());
    retention->Wake();
    EXPECT_TRUE(Exists(id));
    jobs_.clock().Advance(absl::Seconds(1));
    retention->Wake();
    EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(id)));
    retention->Stop();
    MutexLock lock(&mutex_);
    EXPECT_EQ(last_deleted_at_, at);
  }

  Mutex mutex_;
  absl::Time last_deleted_at_ ABSL_GUARDED_BY(mutex_);
  int news_ ABSL_GUARDED_BY(mutex_) = 0;
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
  jobs_.clock().Advance(kKeep);
  later.Wake();
  std::vector<std::string> deleted = TakeDeleted(16);
  // The rest follows after a pause.
  EXPECT_THAT(deleted, SizeIs(16));
  jobs_.clock().Advance(kBetween);
  later.Wake();
  for (std::string& name : TakeDeleted(4)) deleted.push_back(std::move(name));
  EXPECT_THAT(deleted, testing::UnorderedElementsAreArray(names));
}

// A restored database does not know if jobs ran on after the backup, and when they ended.
TEST_F(JobRetentionTest, AfterARestorationTheTimeBeginsAnew) {
  const std::string job = Ended("job");
  jobs_.clock().Advance(2 * kKeep);
  const absl::Time restored = jobs_.clock().Now();
  JobRetention later(&jobs_.machine(), {.keep = kKeep, .restored = restored}, &jobs_.clock(), NoteDeleted());
  later.Start();
  ExpectDeletedAt(restored + kKeep, job, &later);
}

// The restoration was recorded while the clock was ahead, which nobody knows any more.
TEST_F(JobRetentionTest, ARestorationWasBeforeTheStartWhateverItsStampSays) {
  const std::string job = Ended("job");
  const absl::Time restored = jobs_.clock().Now() + absl::Hours(24 * 3650);
  JobRetention later(&jobs_.machine(), {.keep = kKeep, .restored = restored}, &jobs_.clock(), NoteDeleted());
  const absl::Time started = jobs_.clock().Now();
  later.Start();
  ExpectDeletedAt(started + kKeep, job, &later);
}

// A clock that is wrong at the start has a day to be set.
TEST_F(JobRetentionTest, DeletesNothingOnTheFirstDayAfterAStart) {
  const std::string job = Ended("job");
  jobs_.clock().Advance(100 * kDay);
  JobRetention later(&jobs_.machine(), {.keep = 30 * kDay}, &jobs_.clock(), NoteDeleted());
  later.Start();
  ExpectDeletedAt(jobs_.clock().Now() + kDay, job, &later);
}

TEST_F(JobRetentionTest, DeletesNothingOnTheFirstDayAfterAJumpOfTheClock) {
  const std::string job = Ended("job");
  SettableClock clock(&jobs_.clock());
  JobRetention later(&jobs_.machine(), {.keep = 30 * kDay}, &clock, NoteNews());
  later.Start();
  jobs_.clock().Advance(10 * kDay);
  Set(&clock, 3650 * kDay, &later, 1);
  ExpectDeletedAt(jobs_.clock().Now() + kDay, job, &later);
}

TEST_F(JobRetentionTest, AJumpThatIsTakenBackWithinADayChangesNothing) {
  const std::string job = Ended("job");
  const absl::Time ended = jobs_.clock().Now();
  SettableClock clock(&jobs_.clock());
  JobRetention later(&jobs_.machine(), {.keep = 30 * kDay}, &clock, NoteNews());
  later.Start();
  jobs_.clock().Advance(10 * kDay);
  Set(&clock, 3650 * kDay, &later, 1);
  jobs_.clock().Advance(kDay - absl::Seconds(1));
  Set(&clock, -3650 * kDay, &later, 2);
  jobs_.clock().Advance(kDay - absl::Seconds(1));
  Set(&clock, absl::ZeroDuration(), &later, 3);
  ExpectDeletedAt(ended + 30 * kDay, job, &later);
}

// Its end seems to be long ago as soon as the clock is right again.
TEST_F(JobRetentionTest, KeepsAJobThatEndedWhileTheClockWasSetBack) {
  jobs_.settable_clock().Set(-30 * kDay);
  const std::string job = Ended("job");
  jobs_.settable_clock().Set(absl::ZeroDuration());
  jobs_.clock().Advance(absl::Seconds(3));
  const absl::Time restarted = jobs_.clock().Now();
  JobRetention next(&jobs_.machine(), {.keep = 10 * kDay}, &jobs_.clock(), NoteDeleted());
  next.Start();
  ExpectDeletedAt(restarted + kDay, job, &next);
}

TEST_F(JobRetentionTest, SeesByAJobsEndThatTheClockWasSetBackForAMoment) {
  // The thread must not look at the clock in the moment, so it waits in its listener.
  absl::Notification over;
  JobRetention::Listener listener = NoteNews();
  listener.deleted = [note = listener.deleted, &over](const std::string& name) {
    note(name);
    over.WaitForNotification();
  };
  JobRetention later(&jobs_.machine(), {.keep = 10 * kDay}, &jobs_.settable_clock(), std::move(listener));
  const std::string early = Ended("early");
  later.Start();
  jobs_.clock().Advance(20 * kDay);
  later.Wake();
  // From here on, the thread does not search for ended jobs.
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(early)));
  jobs_.settable_clock().Set(-30 * kDay);
  const absl::StatusOr<v1::Job> job = jobs_.machine().Get(Ended("job"));
  if (job.ok()) later.OnMoved(*job);
  jobs_.settable_clock().Set(absl::ZeroDuration());
  over.Notify();
  ASSERT_TRUE(job.ok()) << job.status();
  AwaitNews(1);
  ExpectDeletedAt(jobs_.clock().Now() + kDay, JobId(job->name()), &later);
}

// The daemon was down, or the clock of the worker's node is wrong.
TEST_F(JobRetentionTest, AWorkersOtherTimeStopsNoDeletion) {
  retention_.Start();
  jobs_.clock().Advance(10 * kDay);
  for (const absl::Duration ahead : {-absl::Hours(3), absl::Hours(3)}) {
    const std::string id = jobs_.NewJob();
    jobs_.clock().Advance(absl::Hours(5));
    const absl::Time end = jobs_.clock().Now() + ahead;
    ASSERT_TRUE(jobs_.Schedule(id).ok());
    internal::v1::WorkerEvent finished = Finished(1, v1::JOB_STATE_FAILED);
    *finished.mutable_time() = TimestampOf(end);
    ASSERT_TRUE(jobs_.Apply(id, 1, {finished}).ok());
    ASSERT_EQ(TimeOf(jobs_.Get(id).end_time()), end);
    jobs_.clock().Advance(end + kKeep - absl::Seconds(1) - jobs_.clock().Now());
    // A deletion shows that nothing else is due.
    retention_.Wake();
    EXPECT_TRUE(Exists(id));
    Advance(absl::Seconds(1));
    EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(id)));
  }
}

TEST_F(JobRetentionTest, AWorkersClockThatIsYearsBackDeletesNoNewJob) {
  JobRetention later(&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), NoteNews());
  jobs_.machine().AddObserver(&later);
  later.Start();
  jobs_.clock().Advance(10 * kDay);
  const std::string id = jobs_.NewJob();
  const absl::Time created = jobs_.clock().Now();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  internal::v1::WorkerEvent finished = Finished(1, v1::JOB_STATE_FAILED);
  *finished.mutable_time() = TimestampOf(absl::UnixEpoch());
  // The job trained for longer than jobs are kept.
  jobs_.clock().Advance(2 * kDay);
  const absl::Time reported = jobs_.clock().Now();
  ASSERT_TRUE(jobs_.Apply(id, 1, {finished}).ok());
  AwaitNews(1);
  // The job's end is unknown, so deletions wait for a day after the report.
  ExpectDeletedAt(std::max(created + kKeep, reported + kDay), id, &later);
}

// A job that starts from the other job's model makes the retention look at it early.
TEST_F(JobRetentionTest, AJobWhoseNodeIsAheadIsKept) {
  retention_.Start();
  jobs_.clock().Advance(10 * kDay);
  const std::string source = jobs_.NewJob();
  const absl::Time end = jobs_.clock().Now() + absl::Hours(3);
  ASSERT_TRUE(jobs_.Schedule(source).ok());
  internal::v1::WorkerEvent finished = Finished(1, v1::JOB_STATE_FAILED);
  *finished.mutable_time() = TimestampOf(end);
  ASSERT_TRUE(jobs_.Apply(source, 1, {finished}).ok());
  const std::string next = JobFrom(source);
  jobs_.clock().Advance(absl::Hours(1));
  ASSERT_TRUE(jobs_.Cancel(next).ok());
  ASSERT_TRUE(jobs_.Delete(next).ok());
  // `next` causes looks at itself and at its source, each with a pause. After the witness, these looks are
  // over.
  jobs_.clock().Advance(absl::Hours(1));
  const std::string witness = Ended("witness");
  Advance(kKeep);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(witness)));
  ExpectDeletedAt(end + kKeep, source, &retention_);
}

TEST_F(JobRetentionTest, AJobFromTheFutureEndedBeforeTheClockWasSet) {
  JobRetention later(&jobs_.machine(), {.keep = 10 * kDay}, &jobs_.settable_clock(), NoteNews());
  later.Start();
  Set(&jobs_.settable_clock(), 3650 * kDay, &later, 1);
  const std::string job = Ended("job");
  jobs_.clock().Advance(5 * kDay);
  Set(&jobs_.settable_clock(), absl::ZeroDuration(), &later, 2);
  ExpectDeletedAt(jobs_.clock().Now() + 10 * kDay, job, &later);
}

TEST_F(JobRetentionTest, AMachineThatIsOffEachWeekendDeletesAllJobs) {
  std::string last;
  for (int week = 0; week < 20; ++week) {
    const std::string job = Ended(absl::StrCat("job-", week));
    JobRetention monday(&jobs_.machine(), {.keep = 7 * kDay}, &jobs_.clock(), NoteDeleted());
    monday.Start();
    jobs_.clock().Advance(kDay);
    monday.Wake();
    if (!last.empty()) {
      EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(last)));
    }
    jobs_.clock().Advance(4 * kDay);
    monday.Wake();
    monday.Stop();
    EXPECT_TRUE(Exists(job));
    last = job;
    jobs_.clock().Advance(2 * kDay);
  }
}

// Later ends are observed.
TEST_F(JobRetentionTest, AsksOnceForTheJobsThatHaveEnded) {
  const std::string first = Ended("first");
  JobRetention deaf(&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), NoteDeleted());
  deaf.Start();
  jobs_.clock().Advance(kKeep);
  deaf.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(first)));
  const std::string unheard = Ended("unheard");
  jobs_.clock().Advance(absl::Hours(1));
  const absl::StatusOr<v1::Job> heard = jobs_.machine().Get(Ended("heard"));
  ASSERT_TRUE(heard.ok()) << heard.status();
  deaf.OnMoved(*heard);
  jobs_.clock().Advance(kKeep);
  deaf.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(heard->name()));
  EXPECT_TRUE(Exists(unheard));
}

// For example, a machine without a battery-backed clock before its clock is set: all jobs seem to be in the
// future.
TEST_F(JobRetentionTest, LooksForThemAgainWhenTheClockIsSet) {
  const std::string job = Ended("job");
  SettableClock clock(&jobs_.clock());
  clock.Set(absl::UnixEpoch() - jobs_.clock().Now());
  JobRetention deaf(&jobs_.machine(), {.keep = kKeep}, &clock, NoteNews());
  deaf.Start();
  Set(&clock, absl::ZeroDuration(), &deaf, 1);
  jobs_.clock().Advance(kKeep);
  deaf.Wake();
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(job)));
}

// For example, all deletions fail on a full disk.
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
  // It first reads all jobs.
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

TEST_F(JobRetentionTest, ASweepIsKeptAsLongAsItsLastJob) {
  retention_.Start();
  const StoredSweep sweep = Sweep(2);
  ASSERT_THAT(sweep.jobs, SizeIs(2));
  ASSERT_TRUE(jobs_.Cancel(JobId(sweep.jobs[0].job.name())).ok());
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string other = Ended("other");
  jobs_.clock().Advance(kKeep / 2);
  ASSERT_TRUE(jobs_.Cancel(JobId(sweep.jobs[1].job.name())).ok());
  Advance(kKeep / 2);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(other)));
  EXPECT_TRUE(Exists(JobId(sweep.jobs[0].job.name())));
  Advance(kKeep / 2);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(sweep.sweep.name()));
}

TEST_F(JobRetentionTest, ASweepIsKeptAsLongAsAJobNeedsOneOfItsModels) {
  retention_.Start();
  const StoredSweep sweep = Sweep(1);
  ASSERT_THAT(sweep.jobs, SizeIs(1));
  const std::string source = JobId(sweep.jobs[0].job.name());
  ASSERT_TRUE(jobs_.Cancel(source).ok());
  const std::string next = JobFrom(source);
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string other = Ended("other");
  Advance(2 * kKeep);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(other)));
  EXPECT_TRUE(Exists(source));
  ASSERT_TRUE(jobs_.Cancel(next).ok());
  AdvanceUntilDeleted(source, &retention_);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(sweep.sweep.name()));
}

TEST_F(JobRetentionTest, ListsTheEndedJobsAgainIfItCannot) {
  const std::string id = Ended("job");
  std::vector<std::string> told;
  JobRetention::Listener listener = NoteDeleted();
  listener.failed = [&](int64_t count, const std::string& first, const absl::Status& why) {
    EXPECT_FALSE(why.ok());
    MutexLock lock(&mutex_);
    told.push_back(absl::StrCat(count, " '", first, "'"));
  };
  const auto rename = [this, &id](const std::string& from, const std::string& to) {
    const std::filesystem::path jobs = std::filesystem::path(jobs_.machine().FolderOf(id)).parent_path();
    SQLite::Database((jobs.parent_path() / "tandem.db").string(), SQLite::OPEN_READWRITE,
                     /*aBusyTimeoutMs=*/10'000)
        .exec("ALTER TABLE " + from + " RENAME TO " + to);
  };
  rename("jobs", "away");
  JobRetention later(&jobs_.machine(), {.keep = kKeep}, &jobs_.clock(), std::move(listener));
  later.Start();
  {
    MutexLock lock(&mutex_);
    const auto is_told = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !told.empty(); };
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&is_told), absl::Minutes(1)));
  }
  rename("away", "jobs");
  // The next look is a while later.
  jobs_.clock().Advance(2 * kKeep);
  later.Wake();
  AdvanceUntilDeleted(id, &later);
  EXPECT_THAT(TakeDeleted(1), ElementsAre(JobName(id)));
  later.Stop();
  MutexLock lock(&mutex_);
  EXPECT_EQ(told.front(), "0 ''");
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
