// Tests the stops of a job before its end: cancel, pause, preempt, stop early.
#include "server/jobs/job_machine.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::StatusCode kFailedPrecondition = absl::StatusCode::kFailedPrecondition;

internal::v1::WorkerEvent CheckpointAt(int64_t sequence, int64_t step) {
  internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
  event.mutable_report()->mutable_checkpoint()->set_step(step);
  return event;
}

class JobMachineStopsTest : public testing::Test {
 protected:
  void WriteCheckpointFile(const std::string& id, int64_t step) {
    const std::string folder = jobs_.machine().FolderOf(id);
    std::filesystem::create_directories(folder);
    std::ofstream(absl::StrCat(folder, "/checkpoint-", step, ".safetensors")) << "state";
  }
  JobMachineFixture jobs_;
};

TEST_F(JobMachineStopsTest, AJobOutOfTimeSaysSo) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  Awaited<absl::StatusOr<v1::Job>> done;
  jobs_.machine().Cancel(id, v1::STATE_REASON_TIME_LIMIT_EXCEEDED, done.Done());
  ASSERT_TRUE(done.Get().ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, v1::JOB_STATE_CANCELLED, "Stopped after step 7.")}).ok());
  EXPECT_EQ(jobs_.Get(id).reason(), v1::STATE_REASON_TIME_LIMIT_EXCEEDED);
  EXPECT_THAT(jobs_.Get(id).message(), HasSubstr("It reached its time limit of "));
  EXPECT_THAT(jobs_.Get(id).message(), HasSubstr(" s. Stopped after step 7."));
}

TEST_F(JobMachineStopsTest, AModelFromAPauseIsTheJobsUntilTrainingGoesOn) {
  const auto artifact = [](int64_t sequence, const std::string& name) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_report()->mutable_artifact()->set_name(name);
    return event;
  };
  const auto names = [&](const std::string& id) {
    std::vector<std::string> names;
    const v1::Job job = jobs_.Get(id);
    for (const v1::Artifact& made : job.artifacts()) names.push_back(made.name());
    return names;
  };
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), artifact(2, "best.safetensors")}).ok());
  Awaited<absl::StatusOr<v1::Job>> paused;
  jobs_.machine().Pause(id, paused.Done());
  ASSERT_TRUE(paused.Get().ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {artifact(3, "model.safetensors"), Finished(4, v1::JOB_STATE_PAUSED)}).ok());
  EXPECT_THAT(names(id), ElementsAre("best.safetensors", "model.safetensors"));
  Awaited<absl::StatusOr<v1::Job>> resumed;
  jobs_.machine().Resume(id, /*max_queued_jobs=*/0, resumed.Done());
  ASSERT_TRUE(resumed.Get().ok());
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  EXPECT_THAT(names(id), ElementsAre("best.safetensors", "model.safetensors"));
  ASSERT_TRUE(jobs_.Apply(id, 2, {Started(1)}).ok());
  EXPECT_THAT(names(id), ElementsAre("best.safetensors"));
}

TEST_F(JobMachineStopsTest, CancelsAQueuedJobAtOnce) {
  const std::string id = jobs_.NewJob();
  const auto job = jobs_.Cancel(id);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(job->has_end_time());
  EXPECT_FALSE(job->has_start_time());
  EXPECT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_EQ(jobs_.Schedule(id).status().code(), kFailedPrecondition);
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id, "terminal jobs/" + id));
  jobs_.CheckLog(id);
}

TEST_F(JobMachineStopsTest, CancelsARunningJobInTwoSteps) {
  const std::string id = jobs_.RunningJob();
  jobs_.observer().Take();
  const auto cancelling = jobs_.Cancel(id);
  ASSERT_TRUE(cancelling.ok());
  EXPECT_EQ(cancelling->state(), v1::JOB_STATE_CANCELLING);
  EXPECT_TRUE(jobs_.Cancel(id).ok());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("cancelling jobs/" + id));
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(2, 1)})->state, v1::JOB_STATE_CANCELLING);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(3, v1::JOB_STATE_CANCELLED)}).ok());
  const v1::Job job = jobs_.Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_CANCEL_REQUESTED);
  jobs_.CheckLog(id);
}

TEST_F(JobMachineStopsTest, ACancelledJobEndsCancelledHoweverItsWorkerEnds) {
  for (const v1::JobState end : {v1::JOB_STATE_SUCCEEDED, v1::JOB_STATE_FAILED}) {
    const std::string id = jobs_.RunningJob();
    ASSERT_TRUE(jobs_.Cancel(id).ok());
    ASSERT_TRUE(jobs_.Apply(id, 1, {Finished(2, end, "details")}).ok());
    EXPECT_EQ(jobs_.Get(id).state(), v1::JOB_STATE_CANCELLED);
    EXPECT_EQ(jobs_.Get(id).reason(), v1::STATE_REASON_CANCEL_REQUESTED);
    jobs_.CheckLog(id);
  }
  const std::string lost = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Cancel(lost).ok());
  ASSERT_TRUE(jobs_.WorkerLost(lost, 1).ok());
  EXPECT_EQ(jobs_.Get(lost).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.Get(lost).reason(), v1::STATE_REASON_CANCEL_REQUESTED);
  // Cancelled before the machine heard that training started.
  const std::string starting = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(starting).ok());
  ASSERT_TRUE(jobs_.Cancel(starting).ok());
  ASSERT_TRUE(jobs_.Apply(starting, 1, {Started(1), Finished(2, v1::JOB_STATE_CANCELLED)}).ok());
  EXPECT_EQ(jobs_.Get(starting).state(), v1::JOB_STATE_CANCELLED);
  jobs_.CheckLog(starting);
}

TEST_F(JobMachineStopsTest, WhatHasEndedIsNotPaused) {
  const std::string id = jobs_.RunningJob();
  internal::v1::WorkerEvent checkpoint = MakeWorkerEvent(2);
  checkpoint.mutable_report()->mutable_checkpoint()->set_step(8);
  ASSERT_TRUE(jobs_.Apply(id, 1, {checkpoint, Finished(3, v1::JOB_STATE_SUCCEEDED)}).ok());
  const std::string job = " the job \"jobs/" + id + "\": it is SUCCEEDED";
  const absl::Status pause = jobs_.Pause(id).status();
  EXPECT_EQ(std::string(pause.message()),
            "cannot pause" + job + "; fork it from its last checkpoint, or submit it again");
  EXPECT_EQ(GetReason(pause), "JOB_HAS_ENDED");
  EXPECT_EQ(std::string(jobs_.Resume(id).status().message()),
            "cannot resume" + job +
                ", and only a paused or failed job can be resumed; fork it from its last checkpoint, or "
                "submit it again");
  EXPECT_EQ(std::string(jobs_.Cancel(id).status().message()),
            "cannot cancel" + job + "; delete it to remove its record and files");
  const std::string failed = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.WorkerLost(failed, 1).ok());
  EXPECT_THAT(std::string(jobs_.Pause(failed).status().message()),
              HasSubstr("it is FAILED; resume it to continue its training"));
}

TEST_F(JobMachineStopsTest, AJobThatMakesRoomWaitsAgain) {
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
  const v1::Job again = jobs_.Get(id);
  EXPECT_EQ(again.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(again.reason(), v1::STATE_REASON_PREEMPTED);
  EXPECT_EQ(again.run_seconds(), 9);
  EXPECT_FALSE(again.has_summary());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id));
  // Its worker asks or repeats an event before it ends.
  EXPECT_TRUE(jobs_.Apply(id, 1, {}).ok());
  EXPECT_TRUE(jobs_.Apply(id, 1, {end}).ok());
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(3, 8)}).status().code(), kFailedPrecondition);
  EXPECT_EQ(jobs_.Schedule(id)->attempt(), 2);
}

TEST_F(JobMachineStopsTest, AWorkerThatDiesWhileItMakesRoomCostsTheJobNothing) {
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

TEST_F(JobMachineStopsTest, AJobThatMakesRoomCanBePausedOrCancelled) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Preempt(id).ok());
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSING);
  const std::string other = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(other).ok());
  ASSERT_TRUE(jobs_.Preempt(other).ok());
  EXPECT_EQ(jobs_.Cancel(other)->state(), v1::JOB_STATE_CANCELLING);
}

TEST_F(JobMachineStopsTest, APausedJobWaitsForSomeoneToResumeIt) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), ProgressAt(2, 7)}).ok());
  jobs_.observer().Take();
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSING);
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSING);
  EXPECT_EQ(jobs_.Resume(id).status().code(), absl::StatusCode::kFailedPrecondition);
  // A worker that reconnects learns of the pause.
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

  // Its worker ends as expected, without another report.
  EXPECT_EQ(jobs_.WorkerLost(id, 1)->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(jobs_.Apply(id, 1, {ProgressAt(5, 9)}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs_.Delete(id).code(), absl::StatusCode::kFailedPrecondition);

  WriteCheckpointFile(id, 8);
  const absl::StatusOr<v1::Job> resumed = jobs_.Resume(id);
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(resumed->reason(), v1::STATE_REASON_RESUMED);
  EXPECT_EQ(resumed->message(), "Resumed. It continues from its checkpoint of step 8.");
  EXPECT_FALSE(resumed->has_summary());
  EXPECT_THAT(resumed->devices(), IsEmpty());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued " + job.name()));
  EXPECT_EQ(jobs_.Schedule(id)->attempt(), 2);
  ASSERT_TRUE(jobs_.Apply(id, 2, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).ok());
  EXPECT_TRUE(jobs_.Log(id).back().terminal());
  EXPECT_EQ(jobs_.Resume(id).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs_.Pause(id).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobMachineStopsTest, AFailedJobCanBeResumed) {
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
  // The previous worker is refused.
  EXPECT_EQ(jobs_.Apply(id, 1, {}).status().code(), absl::StatusCode::kFailedPrecondition);
  const v1::Job scheduled = *jobs_.Schedule(id);
  EXPECT_EQ(scheduled.attempt(), 2);
  internal::v1::WorkerEvent started = Started(1);
  started.mutable_started()->set_step(100);
  ASSERT_TRUE(jobs_.Apply(id, 2, {started}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->message(), "Training continues from step 100.");
  EXPECT_EQ(jobs_.Resume(id)->state(), v1::JOB_STATE_RUNNING);
  int64_t sequence = 0;
  for (const v1::JobEvent& event : jobs_.Log(id)) EXPECT_EQ(event.sequence(), ++sequence);
}

TEST_F(JobMachineStopsTest, ACheckpointThatIsGoneIsTold) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(
      jobs_.Apply(id, 1, {Started(1), CheckpointAt(2, 693), Finished(3, v1::JOB_STATE_FAILED, "")}).ok());
  const auto begin = [&](int32_t attempt, int64_t step) {
    EXPECT_TRUE(jobs_.Resume(id).ok());
    EXPECT_TRUE(jobs_.Schedule(id).ok());
    internal::v1::WorkerEvent started = Started(1);
    started.mutable_started()->set_step(step);
    EXPECT_TRUE(jobs_.Apply(id, attempt, {started}).ok());
    const std::string message = jobs_.machine().Get(id)->message();
    EXPECT_TRUE(jobs_.Apply(id, attempt, {Finished(2, v1::JOB_STATE_FAILED, "")}).ok());
    return message;
  };
  EXPECT_EQ(begin(2, 693), "Training continues from step 693.");
  EXPECT_EQ(begin(3, 400),
            "Training continues from step 400: the checkpoint of step 693 is gone or damaged.");
  EXPECT_EQ(
      begin(4, 0),
      "Training started from the beginning: the checkpoint of step 693 is no longer in the job's folder.");
  EXPECT_FALSE(jobs_.machine().Get(id)->has_last_checkpoint());
  EXPECT_EQ(begin(5, 0), "Training began.");
}

TEST_F(JobMachineStopsTest, AWaitingJobIsPausedAtOnce) {
  const std::string id = jobs_.NewJob();
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(jobs_.Schedule(id).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(jobs_.Resume(id)->message(), "Resumed. It waits for devices.");
  EXPECT_EQ(jobs_.Pause(id)->state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(jobs_.Cancel(id)->state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(jobs_.Resume(id).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(JobMachineStopsTest, AWorkerThatIsLostWhilePausingLeavesThePauseToItsLastCheckpoint) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1)}).ok());
  ASSERT_TRUE(jobs_.Pause(id).ok());
  const v1::Job lost = *jobs_.WorkerLost(id, 1, "The worker was killed.");
  EXPECT_EQ(lost.state(), v1::JOB_STATE_PAUSED);
  EXPECT_EQ(lost.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(lost.message(), "Paused without a new checkpoint. The worker was killed.");
  EXPECT_EQ(jobs_.Resume(id)->message(), "Resumed. It has no checkpoint, so it starts from the beginning.");
}

TEST_F(JobMachineStopsTest, AJobThatStopsEarlySaysWhy) {
  const std::string id = jobs_.NewJob();
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  internal::v1::WorkerEvent end = Finished(2, v1::JOB_STATE_SUCCEEDED, "No better.");
  end.mutable_finished()->set_reason(v1::STATE_REASON_NO_IMPROVEMENT);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), end}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->reason(), v1::STATE_REASON_NO_IMPROVEMENT);
  EXPECT_EQ(jobs_.machine().Get(id)->message(), "No better.");
}

TEST_F(JobMachineStopsTest, AWorkerThatEndsUnaskedFailsItsJob) {
  const std::string paused = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Apply(paused, 1, {Finished(2, v1::JOB_STATE_PAUSED, "Step 7.")}).ok());
  v1::Job job = jobs_.Get(paused);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_TRAINING_ERROR);
  EXPECT_EQ(job.message(), "The worker paused without an order. Step 7.");
  // An end without a message has a message all the same.
  const std::string silent = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Apply(silent, 1, {Finished(2, v1::JOB_STATE_FAILED)}).ok());
  job = jobs_.Get(silent);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_TRAINING_ERROR);
  EXPECT_EQ(job.message(), "The worker failed and gave no reason.");
  jobs_.CheckLog(paused);
  jobs_.CheckLog(silent);
}

TEST_F(JobMachineStopsTest, AWorkersOwnMessageIsKept) {
  const std::string cancelled = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Cancel(cancelled).ok());
  ASSERT_TRUE(jobs_.Apply(cancelled, 1, {Finished(2, v1::JOB_STATE_CANCELLED, "Stopped at step 7.")}).ok());
  EXPECT_EQ(jobs_.Get(cancelled).message(), "Stopped at step 7.");
  const std::string paused = jobs_.RunningJob();
  ASSERT_TRUE(jobs_.Pause(paused).ok());
  ASSERT_TRUE(jobs_.Apply(paused, 1, {Finished(2, v1::JOB_STATE_PAUSED, "Paused at step 7.")}).ok());
  EXPECT_EQ(jobs_.Get(paused).message(), "Paused at step 7.");
  const std::string ended = jobs_.RunningJob();
  internal::v1::WorkerEvent early = Finished(2, v1::JOB_STATE_SUCCEEDED, "Stopped early.");
  early.mutable_finished()->set_reason(v1::STATE_REASON_TARGET_REACHED);
  ASSERT_TRUE(jobs_.Apply(ended, 1, {early}).ok());
  EXPECT_EQ(jobs_.Get(ended).message(), "Stopped early.");
  EXPECT_EQ(jobs_.Get(ended).reason(), v1::STATE_REASON_TARGET_REACHED);
}

}  // namespace
}  // namespace tandem
