// Tests groups of workers that train one job, from the supervisor's side.

#include <signal.h>

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/workers/job_folder.h"
#include "server/workers/testing/supervisor_fixture.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class WorkerGroupTest : public SupervisorFixture {
 protected:
  // Blocks until both of the job's workers are known.
  void WaitForBoth(const std::string& id) {
    ASSERT_TRUE(Eventually([&] { return daemon_->WorkerPid(id, 0) > 0 && daemon_->WorkerPid(id, 1) > 0; }));
  }

  // Checks that the job fails with this message, and that none of its workers is left.
  void ExpectLost(const std::string& id, const std::string& message) {
    const v1::Job job = daemon_->WaitForEnd(id);
    EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(job.reason(), v1::STATE_REASON_WORKER_LOST);
    EXPECT_THAT(job.message(), HasSubstr(message));
    for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(daemon_->WorkerPid(id, worker), 0);
  }
};

TEST_F(WorkerGroupTest, EachHasAFolderALockAndALaunch) {
  const std::string id = daemon_->Run("share", 2);
  const v1::Job job = daemon_->WaitForEnd(id);
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.DebugString();
  const JobFolder folder(job.folder());
  for (int worker = 0; worker < 2; ++worker) {
    EXPECT_TRUE(std::filesystem::exists(folder.LaunchPath(1, worker)));
    EXPECT_TRUE(std::filesystem::exists(folder.LogPath(worker)));
  }
  EXPECT_TRUE(std::filesystem::is_directory(folder.RendezvousFolder(1)));
}

TEST_F(WorkerGroupTest, OneThatDiesIsNamedAndEndsAll) {
  for (int victim = 0; victim < 2; ++victim) {
    const std::string id = daemon_->Run("wait", 2);
    ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
    WaitForBoth(id);
    kill(daemon_->WorkerPid(id, victim), SIGKILL);
    ExpectLost(id, absl::StrCat("Worker ", victim, " of 2 (rank ", victim, ") was killed by signal 9"));
  }
}

TEST_F(WorkerGroupTest, OneThatHasNoticedAnotherEndsAll) {
  const std::string id = daemon_->Run("notice", 2);
  ExpectLost(
      id,
      "Worker 1 of 2 (rank 1) exited with code 7: training could not continue. The last line of its log: "
      "rank 0 of 2 (worker 0) has been silent for 30s");
}

TEST_F(WorkerGroupTest, ACancelledJobTakesAllWithIt) {
  const std::string id = daemon_->Run("wait", 2);
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  WaitForBoth(id);
  daemon_->Cancel(id);
  EXPECT_EQ(daemon_->WaitForEnd(id).state(), v1::JOB_STATE_CANCELLED);
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(daemon_->WorkerPid(id, worker), 0);
}

TEST_F(WorkerGroupTest, TheNextDaemonTakesAllOver) {
  const std::string id = daemon_->Run("wait", 2);
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  WaitForBoth(id);
  const pid_t before[] = {daemon_->WorkerPid(id, 0), daemon_->WorkerPid(id, 1)};
  exit_grace_ = absl::Seconds(1);
  Restart();
  for (int worker = 0; worker < 2; ++worker) EXPECT_EQ(daemon_->WorkerPid(id, worker), before[worker]);
  EXPECT_EQ(daemon_->Get(id).state(), v1::JOB_STATE_RUNNING);
  daemon_->WaitForAdoptions();
  kill(before[1], SIGKILL);
  ExpectLost(id, "Worker 1 of 2 (rank 1) ");
}

// Other workers would notice, but there are none.
TEST_F(WorkerGroupTest, TheLastOneOfAGroupThatHangsWithoutADaemonIsKilledByTheNext) {
  const std::string id = daemon_->Run("wait", 2);
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  WaitForBoth(id);
  const pid_t pids[] = {daemon_->WorkerPid(id, 0), daemon_->WorkerPid(id, 1)};
  daemon_.reset();
  kill(pids[0], SIGSTOP);
  kill(pids[1], SIGKILL);
  // Otherwise the next daemon would see and report its end.
  ASSERT_TRUE(Eventually([&] { return IsGone(pids[1]); }));
  silence_limit_ = absl::Seconds(1);
  Restart();
  ExpectLost(id, "silent for more than 1s");
}

TEST_F(WorkerGroupTest, WhatTheFirstOneLeftIsCleared) {
  const std::string id = daemon_->Run("wait", 2);
  ASSERT_TRUE(daemon_->WaitForState(id, v1::JOB_STATE_RUNNING));
  WaitForBoth(id);
  const pid_t first = daemon_->WorkerPid(id, 0);
  daemon_.reset();
  kill(first, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return IsGone(first); }));
  Restart();
  ExpectLost(id, "The worker ended while no daemon was running");
}

}  // namespace
}  // namespace tandem
