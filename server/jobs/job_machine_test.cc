#include "server/jobs/job_machine.h"

#include <set>

#include "absl/strings/strip.h"
#include "engine/base/error_reason.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

using ::google::protobuf::util::TimeUtil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr absl::StatusCode kNotFound = absl::StatusCode::kNotFound;
constexpr absl::StatusCode kFailedPrecondition = absl::StatusCode::kFailedPrecondition;
constexpr absl::StatusCode kInvalidArgument = absl::StatusCode::kInvalidArgument;

class JobMachineTest : public testing::Test {
 protected:
  // A job whose worker trains, having sent one event.
  std::string RunningJob() {
    const std::string id = jobs_.NewJob();
    EXPECT_TRUE(jobs_.Schedule(id).ok());
    EXPECT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
    return id;
  }
  v1::Job Get(const std::string& id) {
    const absl::StatusOr<v1::Job> job = jobs_.machine().Get(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : v1::Job();
  }
  // What is true of every log: numbers without gaps, one terminal event at most and that last, states that
  // follow each other and lead to the job's.
  void CheckLog(const std::string& id) {
    const std::vector<v1::JobEvent> log = jobs_.Log(id);
    const v1::Job job = Get(id);
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    for (size_t i = 0; i < log.size(); ++i) {
      EXPECT_EQ(log[i].sequence(), static_cast<int64_t>(i) + 1);
      EXPECT_EQ(log[i].job(), job.name());
      EXPECT_TRUE(log[i].has_time());
      if (log[i].has_state_change()) {
        EXPECT_EQ(log[i].state_change().from(), state);
        state = log[i].state_change().to();
      }
      EXPECT_EQ(log[i].terminal(), IsTerminal(state));
      if (log[i].terminal()) {
        EXPECT_EQ(i + 1, log.size());
      }
    }
    EXPECT_EQ(state, job.state());
    EXPECT_EQ(job.last_sequence(), static_cast<int64_t>(log.size()));
  }

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

TEST_F(JobMachineTest, AJobOutOfTimeSaysSo) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  Awaited<absl::StatusOr<v1::Job>> done;
  jobs_.machine().Cancel(id, v1::STATE_REASON_TIME_LIMIT_EXCEEDED, done.Done());
  ASSERT_TRUE(done.Get().ok());
  ASSERT_TRUE(
      jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_CANCELLED, "Stopped when it was told to.")}).ok());
  EXPECT_EQ(Get(id).reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
  EXPECT_THAT(Get(id).message(), HasSubstr("its time limit allows"));
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
  epoch.mutable_epoch()->set_epoch(1);
  auto artifact = MakeWorkerEvent(4);
  artifact.mutable_artifact()->set_name("model.safetensors");
  auto notice = MakeWorkerEvent(5);
  notice.mutable_notice()->set_message("hear");
  auto position = jobs_.Apply(id, 1, {started, ProgressAt(2, 10), epoch, artifact, notice});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->worker_sequence, 5);
  EXPECT_EQ(position->state, v1::JOB_STATE_RUNNING);
  auto larger = artifact;
  larger.set_worker_sequence(6);
  larger.mutable_artifact()->set_size_bytes(9);
  jobs_.clock().Advance(absl::Seconds(60));
  ASSERT_TRUE(jobs_.Apply(id, 1, {larger, Finished(7, v1::JOB_STATE_SUCCEEDED)}).ok());

  const v1::Job job = Get(id);
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
  CheckLog(id);

  // Its process ends, as it should; and all of it is there for the next daemon.
  EXPECT_TRUE(jobs_.WorkerLost(id, 1).ok());
  jobs_.Reopen();
  EXPECT_EQ(Get(id).SerializeAsString(), job.SerializeAsString());
  CheckLog(id);
}

TEST_F(JobMachineTest, ARepeatedEventChangesNothing) {
  const std::string id = RunningJob();
  ASSERT_TRUE(jobs_.Apply(id, 1, {ProgressAt(2, 1), ProgressAt(3, 2)}).ok());
  jobs_.Reopen();
  const auto position =
      jobs_.Apply(id, 1, {Started(1), ProgressAt(2, 100), ProgressAt(3, 100), ProgressAt(4, 3)});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->worker_sequence, 4);
  EXPECT_EQ(Get(id).progress().step(), 3);
  EXPECT_THAT(jobs_.Log(id), SizeIs(6));
  CheckLog(id);
}

TEST_F(JobMachineTest, AGapIsRefusedWhole) {
  const std::string id = RunningJob();
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(2, 1), ProgressAt(4, 2)}).status().code(),
            absl::StatusCode::kOutOfRange);
  const auto position = jobs_.Apply(id, 1, {});
  ASSERT_TRUE(position.ok());
  EXPECT_EQ(position->worker_sequence, 1);
  EXPECT_FALSE(Get(id).has_progress());
  CheckLog(id);
}

TEST_F(JobMachineTest, EventsThatHaveNoPlaceAreRefused) {
  const std::string id = RunningJob();
  EXPECT_EQ(jobs_.Apply(id, 1, {Started(2)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply(id, 1, {MakeWorkerEvent(2)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_RUNNING)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(0, 1)}).status().code(), kInvalidArgument);
  EXPECT_EQ(jobs_.Apply("none", 1, {}).status().code(), kNotFound);
  const std::string starting = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(starting).ok());
  EXPECT_EQ(jobs_.Apply(starting, 1, {Finished(1, v1::JOB_STATE_SUCCEEDED)}).status().code(),
            kInvalidArgument);
  CheckLog(id);
  CheckLog(starting);
}

TEST_F(JobMachineTest, NothingFollowsTheTerminalEvent) {
  const std::string id = RunningJob();
  EXPECT_EQ(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_FAILED, "bad"), ProgressAt(3, 1)}).status().code(),
            kFailedPrecondition);
  EXPECT_EQ(Get(id).state(), v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_FAILED, "bad")}).ok());
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(3, 1)}).status().code(), kFailedPrecondition);
  // What was applied before may be repeated.
  const auto position = jobs_.Apply(id, 1, {Started(1), Finished(2, v1::JOB_STATE_FAILED, "bad")});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->worker_sequence, 2);
  EXPECT_EQ(position->state, v1::JOB_STATE_FAILED);
  const v1::Job job = Get(id);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_TRAINING_ERROR);
  EXPECT_EQ(job.message(), "bad");
  CheckLog(id);
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
  CheckLog(id);
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
  notice.mutable_notice()->set_message("here I am");
  ASSERT_TRUE(jobs_.Apply(id, 2, {notice}).ok());
  EXPECT_EQ(jobs_.Requeue(id, 2).status().code(), kFailedPrecondition);
  CheckLog(id);
}

TEST_F(JobMachineTest, CancelsAQueuedJobAtOnce) {
  const std::string id = jobs_.NewJob();
  const auto job = jobs_.Cancel(id);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(job->has_end_time());
  EXPECT_FALSE(job->has_start_time());
  EXPECT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_EQ(jobs_.Schedule(id).status().code(), kFailedPrecondition);
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id, "terminal jobs/" + id));
  CheckLog(id);
}

TEST_F(JobMachineTest, CancelsARunningJobInTwoSteps) {
  const std::string id = RunningJob();
  jobs_.observer().Take();
  const auto cancelling = jobs_.Cancel(id);
  ASSERT_TRUE(cancelling.ok());
  EXPECT_EQ(cancelling->state(), v1::JOB_STATE_CANCELLING);
  EXPECT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("cancelling jobs/" + id));
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(2, 1)})->state, v1::JOB_STATE_CANCELLING);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(3, v1::JOB_STATE_CANCELLED)}).ok());
  const v1::Job job = Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_CANCEL_REQUESTED);
  CheckLog(id);
}

TEST_F(JobMachineTest, ACancelledJobEndsCancelledHoweverItsWorkerEnds) {
  for (const v1::JobState end : {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED}) {
    const std::string id = RunningJob();
    ASSERT_TRUE(jobs_.Cancel(id).ok());
    ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, end, "details")}).ok());
    EXPECT_EQ(Get(id).state(), v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(Get(id).reason(), v1::STATE_REASON_CANCEL_REQUESTED);
    CheckLog(id);
  }
  const std::string lost = RunningJob();
  ASSERT_TRUE(jobs_.Cancel(lost).ok());
  ASSERT_TRUE(jobs_.WorkerLost(lost, 1).ok());
  EXPECT_EQ(Get(lost).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Get(lost).reason(), v1::STATE_REASON_CANCEL_REQUESTED);
  // Cancelled before it heard that training began.
  const std::string starting = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(starting).ok());
  ASSERT_TRUE(jobs_.Cancel(starting).ok());
  ASSERT_TRUE(jobs_.Apply(starting, 1, {Started(1), Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  EXPECT_EQ(Get(starting).state(), v1::JOB_STATE_CANCELLED);
  CheckLog(starting);
}

TEST_F(JobMachineTest, AWorkerThatIsLostOrStopsUnaskedFailsItsJob) {
  const std::string lost = RunningJob();
  const auto job = jobs_.WorkerLost(lost, 1, "killed by signal 9");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job->reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(job->message(), "killed by signal 9");
  EXPECT_EQ(jobs_.Cancel(lost).status().code(), kFailedPrecondition);
  CheckLog(lost);
  const std::string stopped = RunningJob();
  ASSERT_TRUE(jobs_.Apply(stopped, 1, {Finished(2, v1::JOB_STATE_CANCELLED, "SIGTERM")}).ok());
  EXPECT_EQ(Get(stopped).state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(Get(stopped).message(), HasSubstr("SIGTERM"));
  CheckLog(stopped);
}

// What cannot be done says what can.
TEST_F(JobMachineTest, RefusalsSayWhatToDo) {
  const std::string id = RunningJob();
  const std::string job = "the job \"jobs/" + id + "\" is ";
  const auto expect = [&](const absl::Status& status, const std::string& what, const std::string& reason) {
    EXPECT_EQ(status.code(), kFailedPrecondition);
    EXPECT_EQ(std::string(status.message()), job + what);
    EXPECT_EQ(GetReason(status), reason);
  };
  expect(jobs_.Delete(id), "RUNNING: only a job that has ended can be deleted; cancel it first",
         "JOB_HAS_NOT_ENDED");
  ASSERT_TRUE(jobs_.Pause(id).ok());
  expect(jobs_.Resume(id).status(),
         "PAUSING: its worker is still writing its checkpoint; resume it when it is PAUSED",
         "JOB_IS_STOPPING");
  ASSERT_TRUE(jobs_.Cancel(id).ok());
  expect(jobs_.Pause(id).status(),
         "CANCELLING: it is being stopped for good, and cannot be paused; to train it, submit it again",
         "JOB_IS_STOPPING");
  expect(jobs_.Resume(id).status(),
         "CANCELLING: it was stopped for good, and only a job that is paused or has failed goes on; to train "
         "it, "
         "submit it again",
         "JOB_IS_STOPPING");
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  expect(jobs_.Pause(id).status(),
         "CANCELLED: it has ended, so that there is nothing to pause; to train it, submit it again",
         "JOB_HAS_ENDED");
  expect(jobs_.SetPriority(id, -1).status(), "CANCELLED: only a job that has not ended can be changed",
         "JOB_HAS_ENDED");
}

TEST_F(JobMachineTest, WhatHasEndedIsNotPaused) {
  const std::string id = RunningJob();
  internal::v1::WorkerEvent checkpoint = MakeWorkerEvent(2);
  checkpoint.mutable_checkpoint()->set_step(8);
  ASSERT_TRUE(jobs_.Apply(id, 1, {checkpoint, Finished(3, v1::JOB_STATE_SUCCEEDED)}).ok());
  const std::string job = "the job \"jobs/" + id + "\" is SUCCEEDED: ";
  const absl::Status pause = jobs_.Pause(id).status();
  EXPECT_EQ(std::string(pause.message()),
            job +
                "it has ended, so that there is nothing to pause; to train on, fork it from its last "
                "checkpoint, or submit it again");
  EXPECT_EQ(GetReason(pause), "JOB_HAS_ENDED");
  EXPECT_EQ(
      std::string(jobs_.Resume(id).status().message()),
      job +
          "it has trained to its end, and only a job that is paused or has failed goes on; to train on, "
          "fork it from its last checkpoint, or submit it again");
  EXPECT_EQ(std::string(jobs_.Cancel(id).status().message()),
            job +
                "it has ended, so that there is nothing to cancel; delete it to remove its record and its "
                "files");
  const std::string failed = RunningJob();
  ASSERT_TRUE(jobs_.WorkerLost(failed, 1).ok());
  EXPECT_THAT(std::string(jobs_.Pause(failed).status().message()), HasSubstr("resume it to let it go on"));
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
  EXPECT_EQ(Get(id).waiting().reason(), v1::Waiting::REASON_NOT_YET_CONSIDERED);
  source.waiting = waiting;
  jobs_.machine().SetWaitingSource(&source);
  EXPECT_EQ(Get(id).waiting().reason(), v1::Waiting::REASON_DEVICES_BUSY);
  const auto page = jobs_.machine().List({});
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->jobs[0].waiting().position(), 1);
  EXPECT_EQ((*jobs_.machine().NonTerminalJobs())[0].waiting().position(), 1);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  EXPECT_FALSE(Get(id).has_waiting());
}

TEST_F(JobMachineTest, AJobThatMakesRoomWaitsAgain) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(jobs_.Preempt(id).status().code(), kFailedPrecondition);
  jobs_.clock().Advance(absl::Seconds(1));
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  jobs_.observer().Take();
  const absl::StatusOr<v1::Job> preempting = jobs_.Preempt(id);
  ASSERT_TRUE(preempting.ok()) << preempting.status();
  EXPECT_EQ(preempting->state(), v1::JOB_STATE_PREEMPTING);
  EXPECT_EQ(preempting->reason(), v1::STATE_REASON_PREEMPTED);
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("preempting jobs/" + id));
  EXPECT_TRUE(jobs_.Preempt(id).ok());
  EXPECT_EQ(jobs_.Resume(id)->state(), v1::JOB_STATE_PREEMPTING);
  jobs_.clock().Advance(absl::Seconds(9));
  internal::v1::WorkerEvent end = Finished(2, v1::JOB_STATE_PAUSED);
  end.mutable_finished()->mutable_summary()->set_steps(7);
  ASSERT_TRUE(jobs_.Apply(id, 1, {end}).ok());
  const v1::Job again = Get(id);
  EXPECT_EQ(again.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(again.reason(), v1::STATE_REASON_PREEMPTED);
  EXPECT_EQ(again.run_seconds(), 9);
  EXPECT_FALSE(again.has_summary());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id));
  // Its worker asks, or repeats itself, before it is gone.
  EXPECT_TRUE(jobs_.Apply(id, 1, {}).ok());
  EXPECT_TRUE(jobs_.Apply(id, 1, {end}).ok());
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(3, 8)}).status().code(), kFailedPrecondition);
  EXPECT_EQ(jobs_.Schedule(id)->attempt(), 2);
}

TEST_F(JobMachineTest, AWorkerThatDiesWhileItMakesRoomCostsTheJobNothing) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  ASSERT_TRUE(jobs_.Preempt(id).ok());
  const absl::StatusOr<v1::Job> lost = jobs_.WorkerLost(id, 1);
  ASSERT_TRUE(lost.ok()) << lost.status();
  EXPECT_EQ(lost->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(lost->reason(), v1::STATE_REASON_PREEMPTED);
  EXPECT_THAT(lost->message(), HasSubstr("without a new checkpoint"));
}

TEST_F(JobMachineTest, AJobThatMakesRoomCanBePausedOrCancelled) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Preempt(id).ok());
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSING);
  const std::string other = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(other).ok());
  ASSERT_TRUE(jobs_.Preempt(other).ok());
  EXPECT_EQ(jobs_.Cancel(other)->state(), v1::JOB_STATE_CANCELLING);
}

TEST_F(JobMachineTest, PrioritiesChangeWithAnEvent) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(Get(id).priority(), 0);
  EXPECT_EQ(Get(id).user(), "admin");
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
  EXPECT_THAT(std::string(refused.message()), HasSubstr("\"ann\" has 2 queued jobs, and the quota is 2"));
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
  EXPECT_EQ(Get(id).run_seconds(), 10);
  ASSERT_TRUE(jobs_.Resume(id).ok());
  jobs_.clock().Advance(absl::Seconds(100));
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  jobs_.clock().Advance(absl::Seconds(5));
  // One that never was started held its devices for nothing.
  ASSERT_TRUE(jobs_.Requeue(id, 2).ok());
  EXPECT_EQ(Get(id).run_seconds(), 10);
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
    if (*event == nullptr) break;
    streamed.push_back((*event)->SerializeAsString());
  }
  std::vector<std::string> logged;
  for (const v1::JobEvent& event : jobs_.Log(id)) logged.push_back(event.SerializeAsString());
  EXPECT_EQ(streamed, logged);
  std::vector<v1::JobState> states;
  for (int i = 0; i < 4; ++i) {
    Awaited<ChangeSubscription::Result> next;
    changes->Next(next.Done());
    const auto change = next.Get();
    ASSERT_TRUE(change.ok() && *change != nullptr);
    states.push_back((*change)->event.state_change().to());
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

internal::v1::WorkerEvent CheckpointAt(int64_t sequence, int64_t step) {
  internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
  event.mutable_checkpoint()->set_step(step);
  return event;
}

TEST_F(JobMachineTest, APausedJobWaitsForSomeoneToResumeIt) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), ProgressAt(2, 7)}).ok());
  jobs_.observer().Take();
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSING);
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSING);
  EXPECT_EQ(jobs_.Resume(id).status().code(), absl::StatusCode::kFailedPrecondition);
  // A worker that comes back hears of it.
  EXPECT_EQ(jobs_.Apply(id, 1, {})->state, v1::JOB_STATE_PAUSING);

  internal::v1::WorkerEvent end = Finished(4, v1::JOB_STATE_PAUSED, "Paused after step 8.");
  end.mutable_finished()->mutable_summary()->set_steps(8);
  ASSERT_TRUE(jobs_.Apply(id, 1, {CheckpointAt(3, 8), end}).ok());
  v1::Job job = *jobs_.machine().Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_PAUSE_REQUESTED);
  EXPECT_EQ(job.message(), "Paused after step 8.");
  EXPECT_EQ(job.summary().steps(), 8);
  EXPECT_EQ(job.last_checkpoint().step(), 8);
  EXPECT_FALSE(job.has_end_time());
  EXPECT_FALSE(jobs_.Log(id).back().terminal());
  EXPECT_EQ(jobs_.Log(id).back().state_change().summary().steps(), 8);
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("pausing " + job.name(), "paused " + job.name()));

  // Its worker is gone, as it should be; and has nothing more to say.
  EXPECT_EQ(jobs_.WorkerLost(id, 1)->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(5, 9)}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs_.Delete(id).code(), absl::StatusCode::kFailedPrecondition);

  const absl::StatusOr<v1::Job> resumed = jobs_.Resume(id);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(resumed->reason(), v1::STATE_REASON_RESUMED);
  EXPECT_EQ(resumed->message(), "Resumed. It goes on from its checkpoint of step 8.");
  EXPECT_FALSE(resumed->has_summary());
  EXPECT_THAT(resumed->devices(), IsEmpty());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued " + job.name()));
  EXPECT_EQ(jobs_.Schedule(id)->attempt(), 2);
  ASSERT_TRUE(jobs_.Apply(id, 2, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).ok());
  EXPECT_TRUE(jobs_.Log(id).back().terminal());
  EXPECT_EQ(jobs_.Resume(id).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs_.Pause(id).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobMachineTest, AFailedJobCanBeResumed) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), CheckpointAt(2, 100)}).ok());
  EXPECT_EQ(jobs_.WorkerLost(id, 1)->state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(jobs_.machine().Get(id)->has_end_time());
  EXPECT_TRUE(jobs_.Log(id).back().terminal());
  jobs_.Reopen();
  const v1::Job resumed = *jobs_.Resume(id);
  EXPECT_EQ(resumed.state(), v1::JOB_STATE_QUEUED);
  EXPECT_FALSE(resumed.has_end_time());
  EXPECT_EQ(resumed.last_checkpoint().step(), 100);
  EXPECT_FALSE(jobs_.Log(id).back().terminal());
  EXPECT_THAT(*jobs_.machine().NonTerminalJobs(), SizeIs(1));
  // The worker of before is dismissed.
  EXPECT_EQ(jobs_.Apply(id, 1, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  const v1::Job scheduled = *jobs_.Schedule(id);
  EXPECT_EQ(scheduled.attempt(), 2);
  internal::v1::WorkerEvent started = Started(1);
  started.mutable_started()->set_step(100);
  ASSERT_TRUE(jobs_.Apply(id, 2, {started}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->message(), "Training goes on from step 100.");
  EXPECT_EQ(jobs_.Resume(id)->state(), v1::JOB_STATE_RUNNING);
  int64_t sequence = 0;
  for (const v1::JobEvent& event : jobs_.Log(id)) EXPECT_EQ(event.sequence(), ++sequence);
}

TEST_F(JobMachineTest, AWaitingJobIsPausedAtOnce) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(jobs_.Schedule(id).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs_.Resume(id)->message(), "Resumed. It waits for its devices.");
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(jobs_.Cancel(id)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.Resume(id).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobMachineTest, AWorkerThatIsLostWhilePausingLeavesThePauseToItsLastCheckpoint) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  ASSERT_TRUE(jobs_.Pause(id).ok());
  const v1::Job lost = *jobs_.WorkerLost(id, 1, "The worker was killed.");
  EXPECT_EQ(lost.state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(lost.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(lost.message(), "Paused, without a new checkpoint. The worker was killed.");
  EXPECT_EQ(jobs_.Resume(id)->message(), "Resumed. It has no checkpoint, and begins anew.");
}

TEST_F(JobMachineTest, AJobThatStopsEarlySaysWhy) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  internal::v1::WorkerEvent end = Finished(2, v1::JOB_STATE_SUCCEEDED, "No better.");
  end.mutable_finished()->set_reason(v1::STATE_REASON_NO_IMPROVEMENT);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), end}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_NO_IMPROVEMENT);
  EXPECT_EQ(jobs_.machine().Get(id)->message(), "No better.");
}

}  // namespace
}  // namespace tandem
