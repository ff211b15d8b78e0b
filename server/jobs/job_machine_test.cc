#include "server/jobs/job_machine.h"

#include <set>

#include "engine/base/error_reason.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

using ::google::protobuf::util::TimeUtil;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

class JobMachineTest : public testing::Test {
 protected:
  JobMachineFixture jobs_;
};

TEST_F(JobMachineTest, MakesAQueuedJobWithItsFirstEvent) {
  JobMachine::NewJob request;
  request.spec.set_name("lenet");
  request.spec.mutable_replicas()->set_count(2);
  request.planned_memory_bytes = 77;
  const auto job = jobs_.Create(request);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->name(), MatchesRegex("jobs/lenet-[a-z2-7]{6}"));
  EXPECT_EQ(job->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job->reason(), v1::STATE_REASON_SUBMITTED);
  EXPECT_EQ(job->spec().replicas().count(), 2);
  EXPECT_EQ(job->planned_memory_bytes(), 77);
  EXPECT_EQ(job->attempt(), 0);
  EXPECT_EQ(job->last_sequence(), 1);
  EXPECT_THAT(job->folder(), HasSubstr("/jobs/lenet-"));
  EXPECT_EQ(TimeUtil::TimestampToSeconds(job->create_time()), 1700000000);
  EXPECT_EQ(job->waiting().reason(), v1::Waiting::REASON_NOT_YET_CONSIDERED);
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued " + job->name()));
  const auto log = jobs_.Log(JobId(job->name()));
  ASSERT_THAT(log, SizeIs(1));
  EXPECT_EQ(log[0].state_change().to(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(log[0].attempt(), 0);
}

TEST_F(JobMachineTest, JobsOfOneNameHaveIdsOfTheirOwn) {
  std::set<std::string> ids;
  for (int i = 0; i < 50; ++i) ids.insert(jobs_.NewJob("same"));
  EXPECT_EQ(ids.size(), 50U);
}

TEST_F(JobMachineTest, ARequestIdMakesOneJob) {
  const auto first = jobs_.Create("a", "r1");
  ASSERT_TRUE(first.ok());
  jobs_.Reopen();
  jobs_.observer().Take();
  const auto again = jobs_.Create("a", "r1");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->name(), first->name());
  EXPECT_EQ(again->waiting().reason(), v1::Waiting::REASON_NOT_YET_CONSIDERED);
  EXPECT_THAT(jobs_.observer().Take(), IsEmpty());
  EXPECT_THAT(jobs_.Log(JobId(first->name())), SizeIs(1));

  const auto other = jobs_.Create("b", "r1");
  EXPECT_EQ(other.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr(first->name()));
  const auto without = jobs_.Create("a");
  ASSERT_TRUE(without.ok());
  EXPECT_NE(without->name(), first->name());
}

TEST_F(JobMachineTest, ARequestIsComparedAsItWasSentNotWithItsDefaults) {
  JobMachine::NewJob request;
  request.request_id = "r";
  request.submitted_spec.set_name("a");
  request.spec = request.submitted_spec;
  const auto first = jobs_.Create(request);
  ASSERT_TRUE(first.ok());
  request.spec.mutable_replicas()->set_count(1);
  const auto again = jobs_.Create(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->name(), first->name());
}

TEST_F(JobMachineTest, AJobsWholeLife) {
  const std::string id = jobs_.NewJob();
  const auto scheduled = jobs_.Schedule(id);
  ASSERT_TRUE(scheduled.ok());
  EXPECT_EQ(scheduled->state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(scheduled->attempt(), 1);
  EXPECT_THAT(scheduled->devices(), ElementsAre("devices/cpu:0", "devices/cpu:1"));
  EXPECT_FALSE(scheduled->has_waiting());
  EXPECT_TRUE(scheduled->has_spec());

  auto started = Started(1);
  *started.mutable_time() = TimeUtil::SecondsToTimestamp(1700000005);
  auto epoch = MakeWorkerEvent(3);
  epoch.mutable_report()->mutable_epoch()->set_epoch(1);
  auto artifact = MakeWorkerEvent(4);
  artifact.mutable_report()->mutable_artifact()->set_name("model.safetensors");
  auto notice = MakeWorkerEvent(5);
  notice.mutable_report()->mutable_notice()->set_message("hear");
  auto position = jobs_.Apply(id, 1, {started, ProgressAt(2, 10), epoch, artifact, notice});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->worker_sequence, 5);
  EXPECT_EQ(position->state, v1::JOB_STATE_RUNNING);
  auto larger = artifact;
  larger.set_worker_sequence(6);
  larger.mutable_report()->mutable_artifact()->set_size_bytes(9);
  jobs_.clock().Advance(absl::Seconds(60));
  ASSERT_TRUE(jobs_.Apply(id, 1, {larger, Finished(7, v1::JOB_STATE_SUCCEEDED)}).ok());

  const v1::Job job = jobs_.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_COMPLETED);
  EXPECT_EQ(TimeUtil::TimestampToSeconds(job.start_time()), 1700000005);
  EXPECT_EQ(TimeUtil::TimestampToSeconds(job.end_time()), 1700000060);
  EXPECT_EQ(job.progress().step(), 10);
  EXPECT_EQ(job.last_epoch().epoch(), 1);
  ASSERT_THAT(job.artifacts(), SizeIs(1));
  EXPECT_EQ(job.artifacts(0).size_bytes(), 9);
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id, "terminal jobs/" + id));

  const auto log = jobs_.Log(id);
  ASSERT_THAT(log, SizeIs(9));
  EXPECT_EQ(log[1].attempt(), 1);
  EXPECT_EQ(log[3].progress().step(), 10);
  EXPECT_EQ(log[6].notice().message(), "hear");
  jobs_.CheckLog(id);

  // Its process ends as expected, and the next daemon finds everything.
  EXPECT_TRUE(jobs_.WorkerLost(id, 1).ok());
  jobs_.Reopen();
  EXPECT_EQ(jobs_.Get(id).SerializeAsString(), job.SerializeAsString());
  jobs_.CheckLog(id);
}

TEST_F(JobMachineTest, NothingFollowsTheTerminalEvent) {
  const std::string id = jobs_.RunningJob();
  EXPECT_EQ(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_FAILED, "bad"), ProgressAt(3, 1)}).status().code(),
            kFailedPrecondition);
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_FAILED, "bad")}).ok());
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(3, 1)}).status().code(), kFailedPrecondition);
  // Events that were applied before may be repeated.
  const auto position = jobs_.Apply(id, 1, {Started(1), Finished(2, v1::JOB_STATE_FAILED, "bad")});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->worker_sequence, 2);
  EXPECT_EQ(position->state, v1::JOB_STATE_FAILED);
  const v1::Job job = jobs_.Get(id);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_TRAINING_ERROR);
  EXPECT_EQ(job.message(), "bad");
  jobs_.CheckLog(id);
}

TEST_F(JobMachineTest, AWorkerOfAnotherAttemptIsFencedOff) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(jobs_.Apply(id, 0, {}).status().code(), kFailedPrecondition);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Requeue(id, 1).ok());
  EXPECT_EQ(jobs_.Apply(id, 1, {}).status().code(), kFailedPrecondition);
  ASSERT_EQ(jobs_.Schedule(id)->attempt(), 2);
  EXPECT_EQ(jobs_.Apply(id, 1, {Started(1)}).status().code(), kFailedPrecondition);
  EXPECT_EQ(jobs_.Apply(id, 3, {Started(1)}).status().code(), kFailedPrecondition);
  EXPECT_EQ(jobs_.WorkerLost(id, 1).status().code(), kFailedPrecondition);
  EXPECT_TRUE(jobs_.Apply(id, 2, {Started(1)}).ok());
  jobs_.CheckLog(id);
}

TEST_F(JobMachineTest, RequeuesOnlyAWorkerThatNeverBegan) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(jobs_.Requeue(id, 0).status().code(), kFailedPrecondition);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  jobs_.observer().Take();
  const auto job = jobs_.Requeue(id, 1);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job->reason(), v1::STATE_REASON_REQUEUED);
  EXPECT_THAT(job->devices(), IsEmpty());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id));
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  auto notice = MakeWorkerEvent(1);
  notice.mutable_report()->mutable_notice()->set_message("here I am");
  ASSERT_TRUE(jobs_.Apply(id, 2, {notice}).ok());
  EXPECT_EQ(jobs_.Requeue(id, 2).status().code(), kFailedPrecondition);
  jobs_.CheckLog(id);
}

TEST_F(JobMachineTest, AWorkerThatIsLostOrStopsUnaskedFailsItsJob) {
  const std::string lost = jobs_.RunningJob();
  const auto job = jobs_.WorkerLost(lost, 1, "killed by signal 9");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job->reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(job->message(), "killed by signal 9. No restart is left (max_restarts is 0). `tandem logs " +
                                lost + " --rank N` has the log of rank N. `tandem resume " + lost +
                                "` continues the job, with new restarts.");
  EXPECT_EQ(jobs_.Cancel(lost).status().code(), kFailedPrecondition);
  jobs_.CheckLog(lost);
  const std::string stopped = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Apply(stopped, 1, {Finished(2, v1::JOB_STATE_CANCELLED, "SIGTERM")}).ok());
  EXPECT_EQ(jobs_.Get(stopped).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(jobs_.Get(stopped).message(), HasSubstr("SIGTERM"));
  jobs_.CheckLog(stopped);
}

// A refusal names the remedy.
TEST_F(JobMachineTest, RefusalsSayWhatToDo) {
  const std::string id = jobs_.RunningJob();
  const std::string job = " the job \"jobs/" + id + "\": it is ";
  const auto expect = [&](const absl::Status& status, const std::string& what, const std::string& reason) {
    EXPECT_EQ(status.code(), kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith("cannot "), EndsWith(job + what)));
    EXPECT_EQ(GetReason(status), reason);
  };
  expect(jobs_.Delete(id), "RUNNING, and only a job that has ended can be deleted; cancel it first",
         "JOB_HAS_NOT_ENDED");
  ASSERT_TRUE(jobs_.Pause(id).ok());
  expect(jobs_.Resume(id).status(),
         "PAUSING, and its worker is still writing its checkpoint; resume it when it is PAUSED",
         "JOB_IS_STOPPING");
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  expect(jobs_.Delete(id), "CANCELLING; delete it when it has ended", "JOB_HAS_NOT_ENDED");
  expect(jobs_.Pause(id).status(), "CANCELLING; submit it again", "JOB_IS_STOPPING");
  expect(jobs_.Resume(id).status(),
         "CANCELLING, and only a paused or failed job can be resumed; submit it again", "JOB_IS_STOPPING");
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  expect(jobs_.Pause(id).status(), "CANCELLED; submit it again", "JOB_HAS_ENDED");
  expect(jobs_.SetPriority(id, -1).status(), "CANCELLED, and only a job that has not ended can be changed",
         "JOB_HAS_ENDED");
}

TEST_F(JobMachineTest, DeletesOnlyJobsThatHaveEnded) {
  const std::string id = jobs_.NewJob();
  const absl::Status refused = jobs_.Delete(id);
  EXPECT_EQ(refused.code(), kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("QUEUED"));
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  jobs_.observer().Take();
  ASSERT_TRUE(jobs_.Delete(id).ok());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("deleted jobs/" + id));
  EXPECT_EQ(jobs_.machine().Get(id).status().code(), kNotFound);
  EXPECT_EQ(jobs_.Delete(id).code(), kNotFound);
  EXPECT_EQ(jobs_.Cancel(id).status().code(), kNotFound);
}

TEST_F(JobMachineTest, SaysWhyAJobWaitsWhileItDoes) {
  const std::string id = jobs_.NewJob();
  v1::Waiting waiting;
  waiting.set_reason(v1::Waiting::REASON_DEVICES_BUSY);
  waiting.set_position(1);
  class Source : public WaitingSource {
   public:
    std::optional<v1::Waiting> WaitingOf(const std::string&, bool) override { return waiting; }
    v1::Waiting waiting;
  } source;
  EXPECT_EQ(jobs_.Get(id).waiting().reason(), v1::Waiting::REASON_NOT_YET_CONSIDERED);
  source.waiting = waiting;
  jobs_.machine().SetWaitingSource(&source);
  EXPECT_EQ(jobs_.Get(id).waiting().reason(), v1::Waiting::REASON_DEVICES_BUSY);
  const auto page = jobs_.machine().List({});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->jobs[0].waiting().position(), 1);
  EXPECT_EQ((*jobs_.machine().NonTerminalJobs())[0].waiting().position(), 1);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  EXPECT_FALSE(jobs_.Get(id).has_waiting());
  // A stop on this machine does not wait.
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_FALSE(jobs_.Get(id).has_waiting());
}

TEST_F(JobMachineTest, SaysWhyAJobWaitsForItsCluster) {
  class Source : public WaitingSource {
   public:
    std::optional<v1::Waiting> WaitingOf(const std::string&, bool) override { return waiting; }
    std::optional<v1::Waiting> waiting;
  } source;
  jobs_.machine().SetWaitingSource(&source);
  JobMachine::NewJob job;
  job.spec.mutable_cluster()->mutable_slurm();
  job.submitted_spec = job.spec;
  const v1::Job made = *jobs_.Create(std::move(job));
  EXPECT_EQ(made.message(), "Accepted; waiting for its cluster.");
  const std::string id = JobId(made.name());
  Awaited<absl::StatusOr<v1::Job>> scheduled;
  jobs_.machine().Schedule(id, {}, scheduled.Done());
  ASSERT_TRUE(scheduled.Get().ok());
  EXPECT_FALSE(jobs_.Get(id).has_waiting());
  source.waiting.emplace().set_reason(v1::Waiting::REASON_CLUSTER);
  EXPECT_EQ(jobs_.Get(id).waiting().reason(), v1::Waiting::REASON_CLUSTER);
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_CANCELLING);
  EXPECT_EQ(jobs_.Get(id).waiting().reason(), v1::Waiting::REASON_CLUSTER);
  ASSERT_TRUE(jobs_.WorkerLost(id, 1).ok());
  EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(jobs_.Get(id).has_waiting());
}

TEST_F(JobMachineTest, PrioritiesChangeWithAnEvent) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(jobs_.Get(id).priority(), 0);
  EXPECT_EQ(jobs_.Get(id).user(), "admin");
  const absl::StatusOr<v1::Job> changed = jobs_.SetPriority(id, 5);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_EQ(changed->priority(), 5);
  EXPECT_EQ(changed->state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(jobs_.SetPriority(id, 5).ok());
  const std::vector<v1::JobEvent> log = jobs_.Log(id);
  ASSERT_EQ(log.size(), 2);
  EXPECT_EQ(log[1].priority_change().from(), 0);
  EXPECT_EQ(log[1].priority_change().to(), 5);
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_EQ(jobs_.SetPriority(id, 1).status().code(), kFailedPrecondition);
  EXPECT_EQ(jobs_.SetPriority("none", 1).status().code(), kNotFound);
}

TEST_F(JobMachineTest, AUserHasNoMoreQueuedJobsThanMayBe) {
  const auto create = [&](const std::string& user) {
    JobMachine::NewJob job;
    job.spec.set_name("job");
    job.user = user;
    job.max_queued_jobs = 2;
    return jobs_.Create(std::move(job));
  };
  const absl::StatusOr<v1::Job> first = create("ann");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->user(), "ann");
  ASSERT_TRUE(create("ann").ok());
  const absl::Status refused = create("ann").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("cannot queue the job: \"ann\" has 2 of at most 2 queued jobs"));
  EXPECT_TRUE(create("bob").ok());
  ASSERT_TRUE(jobs_.Cancel(JobId(first->name())).ok());
  EXPECT_TRUE(create("ann").ok());
}

TEST_F(JobMachineTest, WhatIsHeldCountsOverAllAttempts) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Seconds(10));
  ASSERT_TRUE(jobs_.WorkerLost(id, 1).ok());
  EXPECT_EQ(jobs_.Get(id).run_seconds(), 10);
  ASSERT_TRUE(jobs_.Resume(id).ok());
  jobs_.clock().Advance(absl::Seconds(100));
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  jobs_.clock().Advance(absl::Seconds(5));
  // A worker that never started held its devices for nothing.
  ASSERT_TRUE(jobs_.Requeue(id, 2).ok());
  EXPECT_EQ(jobs_.Get(id).run_seconds(), 10);
}

TEST_F(JobMachineTest, TheQueueOfAClusterIsNoTimeOfTheJob) {
  const auto start = [&] {
    JobMachine::NewJob job;
    job.spec.set_name("job");
    job.spec.mutable_cluster()->mutable_slurm()->set_nodes(1);
    const std::string id = JobId(jobs_.Create(std::move(job))->name());
    Awaited<absl::StatusOr<v1::Job>> done;
    jobs_.machine().Schedule(id, {}, done.Done());
    EXPECT_TRUE(done.Get().ok());
    jobs_.clock().Advance(absl::Seconds(100));
    EXPECT_FALSE(jobs_.Get(id).has_lease_time());
    return id;
  };
  const std::string cancelled = start();
  ASSERT_TRUE(jobs_.Cancel(cancelled).ok());
  ASSERT_TRUE(jobs_.WorkerLost(cancelled, 1).ok());
  EXPECT_EQ(jobs_.Get(cancelled).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.Get(cancelled).run_seconds(), 0);
  const std::string trained = start();
  ASSERT_TRUE(jobs_.Apply(trained, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Seconds(10));
  ASSERT_TRUE(jobs_.WorkerLost(trained, 1).ok());
  EXPECT_EQ(jobs_.Get(trained).run_seconds(), 10);
}

TEST_F(JobMachineTest, WhatTheClockIsSetByIsNotHeld) {
  const std::string id = jobs_.NewJob();
  int attempt = 0;
  for (const absl::Duration ahead : {absl::Hours(24), -absl::Hours(24)}) {
    ASSERT_TRUE(jobs_.Schedule(id).ok());
    ASSERT_TRUE(jobs_.Apply(id, ++attempt, {Started(1)}).ok());
    jobs_.settable_clock().Set(ahead);
    jobs_.clock().Advance(absl::Seconds(10));
    ASSERT_TRUE(jobs_.WorkerLost(id, attempt).ok());
    EXPECT_EQ(jobs_.Get(id).run_seconds(), 10 * attempt);
    ASSERT_TRUE(jobs_.Resume(id).ok());
  }
}

// The daemon knows an earlier daemon's leases only by the clock.
TEST_F(JobMachineTest, AJobOfAnEarlierDaemonHasHeldWhatTheClockSays) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  jobs_.clock().Advance(absl::Seconds(10));
  jobs_.Reopen();
  jobs_.clock().Advance(absl::Seconds(5));
  ASSERT_TRUE(jobs_.WorkerLost(id, 1).ok());
  EXPECT_EQ(jobs_.Get(id).run_seconds(), 15);
}

TEST_F(JobMachineTest, WhatTheClockIsSetByIsNotHeldByAJobOfAnEarlierDaemon) {
  const std::string id = jobs_.NewJob();
  int attempt = 0;
  for (const absl::Duration ahead : {absl::Hours(24), -absl::Hours(24)}) {
    ASSERT_TRUE(jobs_.Schedule(id).ok());
    ASSERT_TRUE(jobs_.Apply(id, ++attempt, {Started(1)}).ok());
    jobs_.clock().Advance(absl::Seconds(10));
    jobs_.Reopen();
    jobs_.settable_clock().Set(ahead);
    jobs_.clock().Advance(absl::Seconds(5));
    ASSERT_TRUE(jobs_.WorkerLost(id, attempt).ok());
    EXPECT_EQ(jobs_.Get(id).run_seconds(), 15 * attempt);
    ASSERT_TRUE(jobs_.Resume(id).ok());
  }
}

TEST_F(JobMachineTest, WatchersSeeTheLogAndTheChanges) {
  const std::string id = jobs_.NewJob();
  const auto events = jobs_.hub().Subscribe(id, 0);
  const auto changes = jobs_.hub().SubscribeChanges(0);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), ProgressAt(2, 1), Finished(3, v1::JOB_STATE_SUCCEEDED)}).ok());
  std::vector<std::string> streamed;
  while (true) {
    Awaited<EventSubscription::Result> next;
    events->Next(next.Done());
    const auto event = next.Get();
    ASSERT_TRUE(event.ok()) << event.status();
    if (!event->has_value()) break;
    streamed.push_back((**event)->SerializeAsString());
  }
  std::vector<std::string> logged;
  for (const v1::JobEvent& event : jobs_.Log(id)) logged.push_back(event.SerializeAsString());
  EXPECT_EQ(streamed, logged);
  std::vector<v1::JobState> states;
  for (int i = 0; i < 4; ++i) {
    Awaited<ChangeSubscription::Result> next;
    changes->Next(next.Done());
    const auto change = next.Get();
    ASSERT_TRUE(change.ok() && change->has_value());
    states.push_back((**change)->event.state_change().to());
  }
  EXPECT_THAT(states, ElementsAre(v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING, v1::JOB_STATE_RUNNING,
                                  v1::JOB_STATE_SUCCEEDED));
}

TEST_F(JobMachineTest, AClosedStoreAnswersUnavailable) {
  const std::string id = jobs_.NewJob();
  jobs_.store().Close();
  EXPECT_EQ(jobs_.Cancel(id).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(jobs_.Apply(id, 1, {}).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tandem
