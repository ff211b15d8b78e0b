// Tests waits and their ends: priorities, preemption, time limits, restarts.
#include <algorithm>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/scheduler_fixture.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(SchedulerTest, AJobThatWaitsAgainStandsBeforeYoungerOnes) {
  OpenAndStart(1);
  const std::string old = NewJob(1);
  starter_.Take();
  jobs_.clock().Advance(absl::Seconds(1));
  const std::string young = NewJob(1);
  WaitFor(young, v1::Waiting::REASON_DEVICES_BUSY, 1);
  ASSERT_TRUE(jobs_.Requeue(old, 1).ok());
  WaitFor(old, v1::Waiting::REASON_LAST_ATTEMPT_ENDING, 1);
  WaitFor(young, v1::Waiting::REASON_DEVICES_BUSY, 2);
  scheduler_->ReleaseLease(old, 1, /*crashed=*/false);
  const FakeStarter::Started again = starter_.Take();
  EXPECT_EQ(again.job.name(), "jobs/" + old);
  EXPECT_EQ(again.job.attempt(), 2);
}

TEST_F(SchedulerTest, AHigherPriorityHasAJobMakeRoomThatGoesOnLater) {
  OpenAndStart(1);
  v1::JobSpec preemptible;
  preemptible.set_preemptible(true);
  const std::string low = NewJob(1, preemptible);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(low, 1, {Started(1)}).ok());
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string high = NewJob(1, urgent, "bob");
  WaitForState(low, v1::JOB_STATE_PREEMPTING);
  ASSERT_TRUE(jobs_.Apply(low, 1, {tandem::Finished(2, v1::JOB_STATE_PAUSED)}).ok());
  WaitFor(low, v1::Waiting::REASON_LAST_ATTEMPT_ENDING, 2);
  EXPECT_TRUE(starter_.IsEmpty());
  scheduler_->ReleaseLease(low, 1, /*crashed=*/false);
  EXPECT_EQ(JobId(starter_.Take().job.name()), high);
  Finish(high, 1);
  const FakeStarter::Started again = starter_.Take();
  EXPECT_EQ(JobId(again.job.name()), low);
  EXPECT_EQ(again.job.attempt(), 2);
}

// Its lease_time is unset until its training begins.
TEST_F(SchedulerTest, AJobInAClustersQueueHoldsSinceItsStart) {
  OpenAndStart(1);
  v1::JobSpec spec;
  spec.mutable_cluster()->mutable_slurm()->set_nodes(1);
  const std::string id = NewJob(1, spec);
  EXPECT_FALSE(starter_.Take().job.has_lease_time());
  // The next decision sees the answered start.
  NewJob(1);
  starter_.Take();
  const std::vector<HoldingJob> holding = policy_.holding();
  const auto held =
      std::find_if(holding.begin(), holding.end(), [&id](const HoldingJob& job) { return job.id == id; });
  ASSERT_TRUE(held != holding.end());
  EXPECT_EQ(held->lease_time, jobs_.clock().Now());
}

TEST_F(SchedulerTest, ACappedSweepsJobsOnAClusterStartInTheirOrder) {
  JobMachine::NewSweep sweep;
  sweep.sweep.set_display_name("search");
  sweep.sweep.set_max_running(1);
  v1::JobSpec spec;
  spec.set_name("small");
  spec.mutable_replicas()->set_count(1);
  spec.mutable_cluster()->mutable_slurm()->set_nodes(1);
  for (int i = 0; i < 8; ++i) sweep.jobs.emplace_back().spec = spec.SerializeAsString();
  OpenAndStart(1);
  Awaited<absl::StatusOr<StoredSweep>> done;
  jobs_.machine().CreateSweep(std::move(sweep), done.Done());
  const absl::StatusOr<StoredSweep> made = done.Get();
  ASSERT_TRUE(made.ok()) << made.status();
  // The last job enters the queue again.
  ASSERT_TRUE(jobs_.SetPriority(JobId(made->jobs.back().job.name()), 5).ok());
  for (const StoredJob& expected : made->jobs) {
    const v1::Job started = starter_.Take().job;
    EXPECT_EQ(started.name(), expected.job.name());
    EXPECT_TRUE(starter_.IsEmpty());
    Finish(JobId(started.name()), 1);
  }
}

TEST_F(SchedulerTest, TimeInWhichAJobRanIsNoWait) {
  OpenAndStart(1);
  v1::JobSpec preemptible;
  preemptible.set_preemptible(true);
  const std::string low = NewJob(1, preemptible);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(low, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Hours(10));
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string high = NewJob(1, urgent, "bob");
  WaitForState(low, v1::JOB_STATE_PREEMPTING);
  ASSERT_TRUE(jobs_.Apply(low, 1, {tandem::Finished(2, v1::JOB_STATE_PAUSED)}).ok());
  WaitFor(low, v1::Waiting::REASON_LAST_ATTEMPT_ENDING, 2);
  scheduler_->ReleaseLease(low, 1, /*crashed=*/false);
  EXPECT_EQ(JobId(starter_.Take().job.name()), high);
  WaitFor(low, v1::Waiting::REASON_DEVICES_BUSY, 1);
  EXPECT_EQ(RaisedBy(low), 0);
  AwaitDecision();
  jobs_.clock().Advance(absl::Hours(2));
  EXPECT_EQ(RaisedBy(low), 2);
}

TEST_F(SchedulerTest, TimeInWhichAJobWasPausedOrOfAnotherPriorityIsNoWait) {
  OpenAndStart(1);
  const std::string running = NewJob(1);
  starter_.Take();
  const std::string id = NewJob(1, {}, "bob");
  AwaitDecision();
  jobs_.clock().Advance(absl::Hours(3));
  EXPECT_EQ(RaisedBy(id), 3);
  ASSERT_TRUE(jobs_.Pause(id).ok());
  jobs_.clock().Advance(absl::Hours(100));
  ASSERT_TRUE(jobs_.Resume(id).ok());
  EXPECT_EQ(RaisedBy(id), 0);
  AwaitDecision();
  jobs_.clock().Advance(absl::Hours(5));
  EXPECT_EQ(RaisedBy(id), 5);
  ASSERT_TRUE(jobs_.SetPriority(id, -1).ok());
  EXPECT_EQ(RaisedBy(id), 0);
}

TEST_F(SchedulerTest, ANewDaemonKnowsHowLongJobsHaveWaited) {
  OpenAndStart(1);
  const std::string running = NewJob(1);
  starter_.Take();
  const std::string next = NewJob(1);
  const std::string third = NewJob(1);
  jobs_.clock().Advance(absl::Hours(4));
  const std::string other = NewJob(1, {}, "bob");
  jobs_.clock().Advance(absl::Hours(2));
  Reopen(1);
  EXPECT_EQ(RaisedBy(next), 6);
  EXPECT_EQ(RaisedBy(other), 2);
  // The start of a running job is also known.
  Finish(running, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), next);
  jobs_.clock().Advance(absl::Hours(3));
  Reopen(1);
  EXPECT_EQ(RaisedBy(third), 3);
  EXPECT_EQ(RaisedBy(other), 5);
  // Setting the clock back makes no job wait longer.
  jobs_.clock().Advance(-absl::Hours(100));
  Reopen(1);
  AwaitDecision();
  jobs_.clock().Advance(absl::Hours(1));
  EXPECT_EQ(RaisedBy(third), 1);
}

TEST_F(SchedulerTest, SettingTheClockChangesNoWait) {
  OpenAndStart(1);
  NewJob(1);
  starter_.Take();
  const std::string id = NewJob(1, {}, "bob");
  AwaitDecision();
  int hours = 0;
  for (const absl::Duration ahead : {absl::Hours(240), -absl::Hours(240), absl::ZeroDuration()}) {
    jobs_.settable_clock().Set(ahead);
    Pass(absl::Hours(1));
    AwaitDecision();
    EXPECT_EQ(RaisedBy(id), ++hours) << ahead;
  }
  // A job that arrives while the clock is back has not waited longer.
  jobs_.settable_clock().Set(-absl::Hours(240));
  const std::string later = NewJob(1, {}, "carl");
  AwaitDecision();
  jobs_.settable_clock().Set(absl::ZeroDuration());
  Pass(absl::Hours(1));
  EXPECT_EQ(RaisedBy(later), 1);
}

TEST_F(SchedulerTest, TimeOverTheQuotaIsNoWait) {
  most_devices_ = 1;
  OpenAndStart(2);
  const std::string first = NewJob(1);
  starter_.Take();
  const std::string second = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_QUOTA, 1);
  NewJob(2, {}, "bob");  // Exceeds its quota for ever.
  v1::JobSpec urgent;
  urgent.set_priority(1);
  const std::string blocker = NewJob(1, urgent, "carl");
  starter_.Take();
  AwaitDecision();
  jobs_.clock().Advance(absl::Hours(5));
  const std::string other = NewJob(1, urgent, "dora");
  WaitFor(other, v1::Waiting::REASON_DEVICES_BUSY, 1);
  Finish(first, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), other);
  EXPECT_EQ(RaisedBy(second), 0);
}

// A job of higher priority arrives while a job that it could preempt is becoming STARTING.
TEST_F(SchedulerTest, AJobThatIsJustStartingCanBePreemptedSoonAfter) {
  OpenAndStart(1);
  const auto new_job = [](bool preemptible, int priority) {
    JobMachine::NewJob job;
    job.user = "ann";
    job.spec.set_name("job");
    job.spec.set_preemptible(preemptible);
    job.spec.set_priority(priority);
    job.spec.mutable_replicas()->set_count(1);
    job.spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);
    return job;
  };
  // The store's writer blocks until both jobs are requested, so the low job's start is committed after them.
  absl::Notification asked;
  jobs_.store().Write(
      [&](Transaction&) {
        asked.WaitForNotification();
        return absl::OkStatus();
      },
      [](const absl::Status&) {});
  std::string low, high;
  absl::Notification high_is_known;
  jobs_.machine().Create(new_job(true, 0), [&](absl::StatusOr<v1::Job> job) {
    low = JobId(job->name());
    // The job gets its device now. Its start waits for the writer, on whose thread this runs.
    while (Holders()[0].empty()) std::this_thread::yield();
  });
  jobs_.machine().Create(new_job(false, 5), [&](absl::StatusOr<v1::Job> job) {
    high = JobId(job->name());
    // A decision is made while the job is in the queue.
    absl::Notification decided;
    scheduler_->Ping([&] { decided.Notify(); });
    decided.WaitForNotification();
    high_is_known.Notify();
  });
  asked.Notify();
  high_is_known.WaitForNotification();
  EXPECT_EQ(JobId(starter_.Take().job.name()), low);
  WaitForState(low, v1::JOB_STATE_PREEMPTING);
}

// A gang waits for one device and keeps another. Estimated run times are no promise.
TEST_F(SchedulerTest, ProgressLetsNoJobPassAGang) {
  OpenAndStart(2);
  const std::string running = NewJob(1);
  starter_.Take();
  const auto progress = [](int64_t sequence, int64_t step) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_report()->mutable_progress()->set_step(step);
    event.mutable_report()->mutable_progress()->set_steps(100);
    return event;
  };
  jobs_.clock().Advance(absl::Hours(1));
  ASSERT_TRUE(jobs_.Apply(running, 1, {Started(1), progress(2, 50)}).ok());
  const std::string gang = NewJob(2);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(1);
  const std::string brief = NewJob(1, limited);
  WaitFor(brief, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  const v1::Waiting waiting = jobs_.machine().Get(gang)->waiting();
  EXPECT_EQ(waiting.estimated_start_time().seconds(),
            absl::ToUnixSeconds(jobs_.clock().Now() + absl::Hours(1)));
  EXPECT_FALSE(waiting.has_latest_start_time());
  jobs_.clock().Advance(absl::Hours(1));
  ASSERT_TRUE(jobs_.Apply(running, 1, {progress(3, 51)}).ok());
  AwaitDecision();
  EXPECT_TRUE(starter_.IsEmpty());
  Finish(running, 1, /*sequence=*/4);
  EXPECT_EQ(JobId(starter_.Take().job.name()), gang);
}

TEST_F(SchedulerTest, ATimeLimitLetsAJobPassAGangWhoseStartIsKnown) {
  OpenAndStart(2);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(3600);
  NewJob(1, limited);
  starter_.Take();
  const std::string gang = NewJob(2);
  limited.set_time_limit_seconds(4000);
  const std::string lasting = NewJob(1, limited);
  limited.set_time_limit_seconds(3000);
  const std::string brief = NewJob(1, limited);
  EXPECT_EQ(JobId(starter_.Take().job.name()), brief);
  WaitFor(lasting, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  EXPECT_EQ(jobs_.machine().Get(gang)->waiting().latest_start_time().seconds(),
            absl::ToUnixSeconds(jobs_.clock().Now() + absl::Hours(1)));
}

// The gang keeps a device. Another job's wait raises it above the gang, without any other event.
TEST_F(SchedulerTest, WaitingAloneLetsAJobStartThatItRaises) {
  ageing_interval_ = absl::Milliseconds(200);
  OpenAndStart(2);
  NewJob(1, {}, "bob");  // Its end is unknown.
  starter_.Take();
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string gang = NewJob(2, urgent, "bob");
  WaitFor(gang, v1::Waiting::REASON_DEVICES_BUSY, 1);
  const std::string small = NewJob(1);
  WaitFor(small, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  AwaitDecision();
  jobs_.clock().Advance(absl::Milliseconds(100));
  ASSERT_TRUE(jobs_.SetPriority(gang, 1).ok());
  EXPECT_EQ(RaisedBy(small), 0);
  jobs_.clock().Advance(absl::Milliseconds(100));
  EXPECT_EQ(JobId(starter_.Take().job.name()), small);
}

// The same, but no alarm has woken the scheduler yet.
TEST_F(SchedulerTest, WhatIsSaidToStartStartsThoughOnlyTimeHasPassed) {
  OpenAndStart(2);
  NewJob(1, {}, "bob");
  starter_.Take();
  v1::JobSpec urgent;
  urgent.set_priority(5);
  const std::string gang = NewJob(2, urgent, "bob");
  const std::string small = NewJob(1);
  AwaitDecision();
  jobs_.clock().Advance(absl::Minutes(30));
  ASSERT_TRUE(jobs_.SetPriority(gang, 1).ok());
  WaitFor(small, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  AwaitDecision();
  jobs_.clock().Advance(absl::Minutes(30));
  scheduler_->ListQueue(0, 10);
  EXPECT_EQ(JobId(starter_.Take().job.name()), small);
}

TEST_F(SchedulerTest, AChangedPriorityChangesTheOrder) {
  OpenAndStart(1);
  const std::string running = NewJob(1);
  starter_.Take();
  const std::string first = NewJob(1);
  const std::string second = NewJob(1);
  WaitFor(second, v1::Waiting::REASON_BEHIND_OTHERS, 2);
  ASSERT_TRUE(jobs_.SetPriority(second, 1).ok());
  WaitFor(second, v1::Waiting::REASON_DEVICES_BUSY, 1);
  Finish(running, 1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), second);
}

TEST_F(SchedulerTest, AJobWhoseTimeIsUpIsCancelled) {
  OpenAndStart(1);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(60);
  const std::string id = NewJob(1, limited);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Seconds(61));
  // Wakes the scheduler: its own alarm uses the real time.
  NewJob(1);
  WaitForState(id, v1::JOB_STATE_CANCELLING);
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
  ASSERT_TRUE(jobs_.Apply(id, 1, {tandem::Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
}

// Its run_seconds has the lease's time, though its process has not exited yet.
TEST_F(SchedulerTest, ANewDaemonCountsTheLeaseOfAPausedJobOnce) {
  OpenAndStart(1);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(60);
  const std::string id = NewJob(1, limited);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  Pass(absl::Seconds(40));
  ASSERT_TRUE(jobs_.Pause(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {tandem::Finished(2, v1::JOB_STATE_PAUSED)}).ok());
  ASSERT_EQ(jobs_.Get(id).run_seconds(), 40);
  Reopen(1);
  ASSERT_THAT(Holders(), ElementsAre("jobs/" + id));
  AwaitDecision();
  ASSERT_TRUE(jobs_.AddNotice(NewJob(1), "after the scheduler's requests").ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_PAUSED);
}

TEST_F(SchedulerTest, AJobOnAClusterIsCancelledAtItsTimeLimitSinceItsTrainingBegan) {
  OpenAndStart(1);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(60);
  limited.mutable_cluster()->mutable_slurm()->set_nodes(1);
  const std::string id = NewJob(1, limited);
  starter_.Take();
  Pass(absl::Seconds(100));
  AwaitDecision();
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  Pass(absl::Seconds(50));
  AwaitDecision();
  ASSERT_TRUE(jobs_.AddNotice(id, "after the scheduler's requests").ok());
  EXPECT_EQ(jobs_.machine().Get(id)->state(), v1::JOB_STATE_RUNNING);
  // The worker has reported no progress.
  Pass(absl::Seconds(11));
  WaitForState(id, v1::JOB_STATE_CANCELLING);
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
}

TEST_F(SchedulerTest, AClockThatIsSetEndsNoJobAndKeepsNoneGoing) {
  OpenAndStart(2);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(60);
  const std::string lasting = NewJob(1, limited);
  starter_.Take();
  ASSERT_TRUE(jobs_.Apply(lasting, 1, {Started(1)}).ok());
  limited.set_time_limit_seconds(1);
  for (const absl::Duration ahead : {absl::Hours(24), -absl::Hours(24)}) {
    const std::string brief = NewJob(1, limited);
    starter_.Take();
    jobs_.settable_clock().Set(ahead);
    Pass(absl::Seconds(2));
    WaitForState(brief, v1::JOB_STATE_CANCELLING);
    // After all its requests.
    absl::Notification has_asked;
    scheduler_->Ping([&] { has_asked.Notify(); });
    has_asked.WaitForNotification();
    ASSERT_TRUE(jobs_.Apply(brief, 1, {tandem::Finished(1, v1::JOB_STATE_CANCELLED)}).ok());
    EXPECT_EQ(jobs_.machine().Get(lasting)->state(), v1::JOB_STATE_RUNNING);
    scheduler_->ReleaseLease(brief, 1, /*crashed=*/false);
  }
}

TEST_F(SchedulerTest, ATimeLimitNeedsNothingToWakeTheScheduler) {
  OpenAndStart(1);
  v1::JobSpec limited;
  limited.set_time_limit_seconds(0.05);
  const std::string id = NewJob(1, limited);
  starter_.Take();
  jobs_.clock().Advance(absl::Seconds(1));
  WaitForState(id, v1::JOB_STATE_CANCELLING);
}

TEST_F(SchedulerTest, AJobThatLostItsWorkerStartsAgainWhenItHasWaited) {
  OpenAndStart(1);
  const std::string id = LostJob();
  WaitFor(id, v1::Waiting::REASON_RESTART_DELAY, 1);
  const v1::Job waiting = *jobs_.machine().Get(id);
  EXPECT_EQ(waiting.waiting().message(),
            "Its worker was lost; it starts again in 1 s or later, restart 1 of 3.");
  EXPECT_EQ(waiting.waiting().estimated_start_time().seconds(), waiting.restart_time().seconds());
  const std::string other = NewJob(1);
  EXPECT_EQ(JobId(starter_.Take().job.name()), other);
  Reopen(1);
  Finish(other, 1);
  WaitFor(id, v1::Waiting::REASON_RESTART_DELAY, 1);
  EXPECT_TRUE(starter_.IsEmpty());
  Pass(absl::Seconds(1));
  const v1::Job again = starter_.Take().job;
  EXPECT_EQ(JobId(again.name()), id);
  EXPECT_FALSE(again.has_restart_time());
}

TEST_F(SchedulerTest, AJobThatWaitsToBeStartedAgainMayBePaused) {
  OpenAndStart(1);
  const std::string id = LostJob();
  ASSERT_TRUE(jobs_.Pause(id).ok());
  ASSERT_TRUE(jobs_.Resume(id).ok());  // A user's request counts at once.
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
}

TEST_F(SchedulerTest, NoClockKeepsAJobFromStartingAgain) {
  OpenAndStart(1);
  const std::string id = LostJob();
  // The clock was a day ahead when the worker was lost.
  jobs_.clock().Advance(-absl::Hours(24));
  Reopen(1);
  WaitFor(id, v1::Waiting::REASON_RESTART_DELAY, 1);
  Pass(absl::Seconds(300));
  EXPECT_EQ(JobId(starter_.Take().job.name()), id);
}

}  // namespace
}  // namespace tandem
