#include "server/jobs/worker_loss.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/time_util.h"
#include "gtest/gtest.h"
#include "server/jobs/job_machine_fixture.h"

namespace tandem {
namespace {

using google::protobuf::util::TimeUtil;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class WorkerLossTest : public testing::Test {
 protected:
  // Creates a STARTING job and returns its id.
  std::string StartingJob(int max_restarts, int keep_last = 1, bool keep_best = false) {
    JobMachine::NewJob job;
    job.spec.set_max_restarts(max_restarts);
    job.spec.mutable_checkpoints()->set_keep_last(keep_last);
    job.spec.mutable_checkpoints()->set_keep_best(keep_best);
    const absl::StatusOr<v1::Job> made = jobs_.Create(std::move(job));
    EXPECT_TRUE(made.ok()) << made.status();
    const std::string id = JobId(made->name());
    EXPECT_TRUE(jobs_.Schedule(id).ok());
    return id;
  }
  absl::StatusOr<v1::Job> Lose(const std::string& id, int32_t attempt, v1::StateReason reason) {
    Awaited<absl::StatusOr<v1::Job>> done;
    jobs_.machine().WorkerLost(id, attempt, reason, "It is gone.", done.Done());
    return done.Get();
  }
  absl::Duration DelayOf(const v1::Job& job) {
    return absl::FromUnixMicros(TimeUtil::TimestampToMicroseconds(job.restart_time())) - jobs_.clock().Now();
  }
  static internal::v1::WorkerEvent CheckpointOf(int64_t sequence, int64_t step, bool best = false) {
    internal::v1::WorkerEvent event = MakeWorkerEvent(sequence);
    event.mutable_report()->mutable_checkpoint()->set_step(step);
    event.mutable_report()->mutable_checkpoint()->set_file(absl::StrCat("checkpoint-", step, ".safetensors"));
    event.mutable_report()->mutable_checkpoint()->set_best(best);
    return event;
  }
  std::vector<int64_t> Kept(const std::string& id) {
    std::vector<int64_t> steps;
    const absl::StatusOr<std::vector<v1::Checkpoint>> checkpoints = jobs_.machine().Checkpoints(id);
    EXPECT_TRUE(checkpoints.ok()) << checkpoints.status();
    for (const v1::Checkpoint& checkpoint : *checkpoints) steps.push_back(checkpoint.step());
    return steps;
  }

  JobMachineFixture jobs_;
};

TEST_F(WorkerLossTest, DelaysDoubleUpToFiveMinutes) {
  std::vector<int64_t> seconds;
  for (int restart = 1; restart <= 12; ++restart) {
    seconds.push_back(absl::ToInt64Seconds(RestartDelay(restart)));
  }
  EXPECT_THAT(seconds, ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300));
  EXPECT_EQ(RestartDelay(100), absl::Seconds(300));
}

TEST_F(WorkerLossTest, GoesOnAsOftenAsItMay) {
  const std::string id = StartingJob(2);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), CheckpointOf(2, 40)}).ok());
  jobs_.observer().Take();
  v1::Job job = *Lose(id, 1, v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_RESTARTING);
  EXPECT_EQ(job.message(),
            "It is gone. It starts again in 1 s or later, from its checkpoint of step 40: restart 1 of 2.");
  EXPECT_EQ(job.restarts(), 1);
  EXPECT_EQ(DelayOf(job), absl::Seconds(1));
  EXPECT_TRUE(job.devices().empty());
  EXPECT_THAT(jobs_.observer().Take(), ElementsAre("queued jobs/" + id));
  EXPECT_FALSE(jobs_.Log(id).back().terminal());
  // The next daemon finds the same.
  jobs_.Reopen();
  EXPECT_EQ(DelayOf(*jobs_.machine().Get(id)), absl::Seconds(1));

  ASSERT_TRUE(jobs_.Schedule(id).ok());
  EXPECT_FALSE(jobs_.machine().Get(id)->has_restart_time());
  job = *Lose(id, 2, v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(job.restarts(), 2);
  EXPECT_EQ(DelayOf(job), absl::Seconds(2));
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  job = *Lose(id, 3, v1::STATE_REASON_WORKER_LOST);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
  EXPECT_THAT(job.message(), HasSubstr("It is gone. It was restarted 2 times"));
  EXPECT_THAT(job.message(), HasSubstr(absl::StrCat("No restart is left (max_restarts is 2). `tandem logs ",
                                                    id, " --rank N` has the log of rank N. `tandem resume ",
                                                    id, "` continues the job, with new restarts.")));
  // Somebody repaired the job.
  EXPECT_EQ(jobs_.Resume(id)->restarts(), 0);
}

TEST_F(WorkerLossTest, IsCountedAnewAfterACheckpointOfAnotherEpoch) {
  const std::string id = StartingJob(1);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    internal::v1::WorkerEvent epoch = MakeWorkerEvent(2);
    epoch.mutable_report()->mutable_epoch()->set_epoch(attempt);
    internal::v1::WorkerEvent checkpoint = CheckpointOf(3, 10 * attempt);
    checkpoint.mutable_report()->mutable_checkpoint()->set_epoch(attempt);
    ASSERT_TRUE(jobs_.Apply(id, attempt, {Started(1), epoch, checkpoint}).ok());
    const v1::Job job = *Lose(id, attempt, v1::STATE_REASON_WORKER_LOST);
    EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(job.restarts(), 1);
    ASSERT_TRUE(jobs_.Schedule(id).ok());
  }
}

// Each attempt of a long job on a cluster ends at its time limit.
TEST_F(WorkerLossTest, APlannedEndAfterACheckpointIsNotCounted) {
  const std::string id = StartingJob(1);
  for (int attempt = 1; attempt <= 4; ++attempt) {
    ASSERT_TRUE(jobs_.Apply(id, attempt, {Started(1), CheckpointOf(2, 10 * attempt), ProgressAt(3, 1)}).ok());
    const v1::Job job =
        *Lose(id, attempt,
              attempt % 2 == 0 ? v1::STATE_REASON_CLUSTER_PREEMPTED : v1::STATE_REASON_CLUSTER_TIME_LIMIT);
    EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
    EXPECT_EQ(job.restarts(), 0);
    EXPECT_EQ(DelayOf(job), absl::Seconds(1));
    EXPECT_EQ(
        job.message(),
        absl::StrCat("It is gone. It starts again in 1 s or later, from its checkpoint of step ",
                     10 * attempt, ". The restart is not counted, because the attempt wrote a checkpoint."));
    ASSERT_TRUE(jobs_.Schedule(id).ok());
  }
  // This attempt only repeats the report of its first checkpoint.
  internal::v1::WorkerEvent resumed = Started(1);
  resumed.mutable_started()->set_step(40);
  ASSERT_TRUE(jobs_.Apply(id, 5, {resumed, CheckpointOf(2, 40)}).ok());
  EXPECT_EQ(Lose(id, 5, v1::STATE_REASON_CLUSTER_TIME_LIMIT)->restarts(), 1);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  // Other losses are counted after a checkpoint, too.
  ASSERT_TRUE(jobs_.Apply(id, 6, {Started(1), CheckpointOf(2, 60)}).ok());
  EXPECT_EQ(Lose(id, 6, v1::STATE_REASON_WORKER_LOST)->state(), v1::JOB_STATE_FAILED);
  const std::string without = StartingJob(1);
  EXPECT_EQ(Lose(without, 1, v1::STATE_REASON_CLUSTER_PREEMPTED)->restarts(), 1);
}

// The next attempt must repeat the epoch, and may die in the same way.
TEST_F(WorkerLossTest, AnEpochWithoutACheckpointCountsForNothing) {
  const std::string id = StartingJob(1);
  for (int attempt = 1; attempt <= 2; ++attempt) {
    internal::v1::WorkerEvent epoch = MakeWorkerEvent(2);
    epoch.mutable_report()->mutable_epoch()->set_epoch(1);
    ASSERT_TRUE(jobs_.Apply(id, attempt, {Started(1), epoch}).ok());
    const v1::Job job = *Lose(id, attempt, v1::STATE_REASON_WORKER_LOST);
    EXPECT_EQ(job.state(), attempt == 1 ? v1::JOB_STATE_QUEUED : v1::JOB_STATE_FAILED);
    if (attempt == 1) {
      ASSERT_TRUE(jobs_.Schedule(id).ok());
    }
  }
}

TEST_F(WorkerLossTest, WhatWouldFailAgainIsNotRepeated) {
  for (const v1::StateReason reason :
       {v1::STATE_REASON_DATA_ERROR, v1::STATE_REASON_NON_FINITE_LOSS, v1::STATE_REASON_IO_ERROR,
        v1::STATE_REASON_CHECKPOINT_ERROR, v1::STATE_REASON_TRAINING_ERROR}) {
    const std::string id = StartingJob(3);
    EXPECT_EQ(Lose(id, 1, reason)->state(), v1::JOB_STATE_FAILED) << reason;
    const std::string told = StartingJob(3);
    internal::v1::WorkerEvent finished = Finished(2, v1::JOB_STATE_FAILED);
    finished.mutable_finished()->set_reason(reason);
    ASSERT_TRUE(jobs_.Apply(told, 1, {Started(1), finished}).ok());
    EXPECT_EQ(jobs_.machine().Get(told)->state(), v1::JOB_STATE_FAILED) << reason;
  }
  // No restart was refused, because none would help.
  EXPECT_THAT(Lose(StartingJob(0), 1, v1::STATE_REASON_TRAINING_ERROR)->message(), Not(HasSubstr("restart")));
  EXPECT_THAT(Lose(StartingJob(0), 1, v1::STATE_REASON_WORKER_LOST)->message(),
              HasSubstr("It is gone. No restart is left (max_restarts is 0)."));
  // A worker that could not be started is retried once.
  const std::string id = StartingJob(3);
  EXPECT_EQ(Lose(id, 1, v1::STATE_REASON_WORKER_START_FAILED)->state(), v1::JOB_STATE_QUEUED);
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  EXPECT_EQ(Lose(id, 2, v1::STATE_REASON_WORKER_START_FAILED)->state(), v1::JOB_STATE_FAILED);
}

TEST_F(WorkerLossTest, TheFirstOfSeveralWorkersTellsOfAnother) {
  internal::v1::WorkerEvent finished = Finished(2, v1::JOB_STATE_FAILED, "rank 1 is gone");
  finished.mutable_finished()->set_reason(v1::STATE_REASON_WORKER_LOST);
  finished.mutable_finished()->mutable_summary()->set_steps(7);
  const std::string id = StartingJob(3);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), finished}).ok());
  const v1::Job job = *jobs_.machine().Get(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job.restarts(), 1);
  EXPECT_THAT(job.message(),
              HasSubstr("rank 1 is gone. It starts again in 1 s or later, from the beginning"));
  EXPECT_FALSE(job.has_summary());
  // The process may ask for its position. Its end changes nothing.
  const auto position = jobs_.Apply(id, 1, {});
  ASSERT_TRUE(position.ok()) << position.status();
  EXPECT_EQ(position->state, v1::JOB_STATE_QUEUED);
  EXPECT_EQ(position->worker_sequence, 2);

  const std::string pausing = StartingJob(3);
  ASSERT_TRUE(jobs_.Apply(pausing, 1, {Started(1)}).ok());
  ASSERT_TRUE(jobs_.Pause(pausing).ok());
  ASSERT_TRUE(jobs_.Apply(pausing, 1, {finished}).ok());
  EXPECT_EQ(jobs_.machine().Get(pausing)->state(), v1::JOB_STATE_PAUSED);
  const std::string cancelling = StartingJob(3);
  ASSERT_TRUE(jobs_.Apply(cancelling, 1, {Started(1)}).ok());
  ASSERT_TRUE(jobs_.Cancel(cancelling).ok());
  ASSERT_TRUE(jobs_.Apply(cancelling, 1, {finished}).ok());
  EXPECT_EQ(jobs_.machine().Get(cancelling)->state(), v1::JOB_STATE_CANCELLED);
}

// A worker may be killed between the file and its report. The record then describes another model.
TEST_F(WorkerLossTest, FilesOfALostWorkerMayBeNewerThanWhatIsKnownOfThem) {
  internal::v1::WorkerEvent made = MakeWorkerEvent(2);
  made.mutable_report()->mutable_artifact()->set_name("best.safetensors");
  made.mutable_report()->mutable_artifact()->set_size_bytes(10);
  made.mutable_report()->mutable_artifact()->set_sha256(std::string(64, 'a'));
  const std::string id = StartingJob(1);
  ASSERT_TRUE(jobs_.Apply(id, 1, {Started(1), made}).ok());
  // Even if the job restarts: it may be cancelled before.
  ASSERT_TRUE(Lose(id, 1, v1::STATE_REASON_WORKER_LOST).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->artifacts(0).sha256(), "");
  jobs_.clock().Advance(RestartDelay(1));
  ASSERT_TRUE(jobs_.Schedule(id).ok());
  // The next worker reports the digest again.
  made.mutable_report()->mutable_artifact()->set_sha256(std::string(64, 'b'));
  ASSERT_TRUE(jobs_.Apply(id, 2, {Started(1), made}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->artifacts(0).sha256(), std::string(64, 'b'));
  EXPECT_EQ(Lose(id, 2, v1::STATE_REASON_WORKER_LOST)->state(), v1::JOB_STATE_FAILED);
  const v1::Job job = *jobs_.machine().Get(id);
  ASSERT_EQ(job.artifacts_size(), 1);
  EXPECT_EQ(job.artifacts(0).sha256(), "");
  EXPECT_EQ(job.artifacts(0).size_bytes(), 10);
}

TEST_F(WorkerLossTest, OneThatWaitsMayBePausedAndCancelled) {
  const std::string paused = StartingJob(3);
  ASSERT_TRUE(Lose(paused, 1, v1::STATE_REASON_WORKER_LOST).ok());
  const v1::Job job = *jobs_.Pause(paused);
  EXPECT_EQ(job.state(), v1::JOB_STATE_PAUSED);
  EXPECT_FALSE(job.has_restart_time());
  EXPECT_FALSE(jobs_.Resume(paused)->has_restart_time());
  const std::string cancelled = StartingJob(3);
  ASSERT_TRUE(Lose(cancelled, 1, v1::STATE_REASON_WORKER_LOST).ok());
  EXPECT_EQ(jobs_.Cancel(cancelled)->state(), v1::JOB_STATE_CANCELLED);
}

TEST_F(WorkerLossTest, CheckpointsThatAreKeptAreKnown) {
  const std::string id = StartingJob(3, /*keep_last=*/2, /*keep_best=*/true);
  EXPECT_THAT(Kept(id), IsEmpty());
  ASSERT_TRUE(jobs_
                  .Apply(id, 1,
                         {Started(1), CheckpointOf(2, 10), CheckpointOf(3, 20, /*best=*/true),
                          CheckpointOf(4, 30), CheckpointOf(5, 40), CheckpointOf(6, 50)})
                  .ok());
  EXPECT_THAT(Kept(id), ElementsAre(50, 40, 20));
  // Training continued from an older checkpoint.
  ASSERT_TRUE(jobs_.Apply(id, 1, {CheckpointOf(7, 45, /*best=*/true)}).ok());
  EXPECT_THAT(Kept(id), ElementsAre(45, 40));
  EXPECT_EQ(jobs_.machine().Get(id)->last_checkpoint().file(), "checkpoint-45.safetensors");
  jobs_.Reopen();
  EXPECT_THAT(Kept(id), ElementsAre(45, 40));

  // A worker reports the checkpoint that it continues from: a known checkpoint, or a checkpoint whose worker
  // died before its report.
  const int64_t events = jobs_.machine().Get(id)->last_sequence();
  ASSERT_TRUE(jobs_.Apply(id, 1, {CheckpointOf(8, 45)}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->last_sequence(), events);
  EXPECT_THAT(Kept(id), ElementsAre(45, 40));
  ASSERT_TRUE(jobs_.Apply(id, 1, {CheckpointOf(9, 60)}).ok());
  EXPECT_EQ(jobs_.machine().Get(id)->last_sequence(), events + 1);
  EXPECT_THAT(Kept(id), ElementsAre(60, 45));

  const std::string one = StartingJob(3);
  ASSERT_TRUE(jobs_.Apply(one, 1, {Started(1), CheckpointOf(2, 10), CheckpointOf(3, 20)}).ok());
  EXPECT_THAT(Kept(one), ElementsAre(20));
  EXPECT_TRUE(absl::IsNotFound(jobs_.machine().Checkpoints("none").status()));
}

}  // namespace
}  // namespace tandem
