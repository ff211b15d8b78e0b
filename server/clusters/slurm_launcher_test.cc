#include "server/clusters/slurm_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "server/clusters/slurm/fake_slurm_client.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"

namespace tandem {
namespace {

using State = LaunchedAttempt::State;
using testing::IsEmpty;
using testing::SizeIs;

class SlurmLauncherTest : public testing::Test {
 protected:
  SlurmLauncherTest() {
    request_.job.set_name("jobs/lenet-1");
    request_.job.set_attempt(2);
    request_.job.set_folder(folder_.path());
    request_.job.mutable_spec()->mutable_replicas()->set_workers(4);
    v1::SlurmCluster* const slurm = request_.job.mutable_spec()->mutable_cluster()->mutable_slurm();
    slurm->set_nodes(2);
    slurm->set_cpus_per_task(3);
    slurm->set_partition("work");
    slurm->set_time_limit_seconds(3600);
    request_.command = {"/usr/bin/tandem-worker", "--launch", "x"};
    std::filesystem::create_directories(JobFolder(folder_.path()).AttemptFolder(2));
  }

  TemporaryFolder folder_;
  FakeSlurmClient client_;
  SlurmLauncher launcher_{&client_};
  LaunchRequest request_;
};

TEST_F(SlurmLauncherTest, SubmitsOneJobWithTheAttemptsTag) {
  const auto attempt = launcher_.Submit(request_);
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  EXPECT_EQ(attempt->handle, "1");
  ASSERT_THAT(client_.submitted(), SizeIs(1));
  const SlurmRequest sent = client_.submitted()[0];
  EXPECT_EQ(sent.comment, "tandem:lenet-1:2");
  EXPECT_EQ(sent.nodes, 2);
  EXPECT_EQ(sent.tasks_per_node, 2);
  EXPECT_EQ(sent.cpus_per_task, 3);
  EXPECT_EQ(sent.time_limit, absl::Hours(1));
  EXPECT_TRUE(std::filesystem::exists(sent.script_path));
}

TEST_F(SlurmLauncherTest, EachEndHasItsReason) {
  ASSERT_TRUE(launcher_.Submit(request_).ok());
  const std::vector<std::pair<SlurmState, v1::StateReason>> ends = {
      {SlurmState::kTimeout, v1::STATE_REASON_CLUSTER_TIME_LIMIT},
      {SlurmState::kPreempted, v1::STATE_REASON_CLUSTER_PREEMPTED},
      {SlurmState::kNodeFail, v1::STATE_REASON_CLUSTER_NODE_FAILED},
      {SlurmState::kOutOfMemory, v1::STATE_REASON_CLUSTER_OUT_OF_MEMORY},
      {SlurmState::kCancelled, v1::STATE_REASON_CLUSTER_CANCELLED},
      {SlurmState::kFailed, v1::STATE_REASON_WORKER_LOST},
      {SlurmState::kCompleted, v1::STATE_REASON_WORKER_LOST}};
  for (const auto& [state, reason] : ends) {
    client_.SetState("1", state);
    const auto attempts = launcher_.Observe();
    ASSERT_TRUE(attempts.ok());
    ASSERT_THAT(*attempts, SizeIs(1));
    EXPECT_EQ((*attempts)[0].state, State::kEnded);
    EXPECT_EQ((*attempts)[0].reason, reason);
  }
}

TEST_F(SlurmLauncherTest, AJobThatHasNotEndedWaitsOrRuns) {
  ASSERT_TRUE(launcher_.Submit(request_).ok());
  EXPECT_EQ((*launcher_.Observe())[0].state, State::kWaiting);
  EXPECT_EQ((*launcher_.Observe())[0].detail, "Resources");
  for (const SlurmState state :
       {SlurmState::kRunning, SlurmState::kCompleting, SlurmState::kSuspended, SlurmState::kUnknown}) {
    client_.SetState("1", state);
    EXPECT_EQ((*launcher_.Observe())[0].state, State::kRunning);
  }
}

TEST_F(SlurmLauncherTest, TakesOverByTheTag) {
  EXPECT_EQ(launcher_.TakeOver({"lenet-1", 2})->has_value(), false);
  client_.LoseNextAnswer();
  EXPECT_EQ(launcher_.Submit(request_).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(launcher_.TakeOver({"lenet-1", 2})->has_value());
  EXPECT_EQ((*launcher_.TakeOver({"lenet-1", 2}))->handle, "1");
}

TEST_F(SlurmLauncherTest, CancelsNoJobWithAnotherTag) {
  const auto attempt = launcher_.Submit(request_);
  ASSERT_TRUE(attempt.ok()) << attempt.status();
  for (const char* comment : {"", "tandem:lenet-1:1", "tandem:another:2"}) {
    client_.Change("1", [&](SlurmJob& job) { job.comment = comment; });
    EXPECT_TRUE(launcher_.Cancel(*attempt).ok());
    EXPECT_THAT(client_.cancelled(), IsEmpty()) << comment;
  }
  client_.Change("1", [](SlurmJob& job) { job.comment = "tandem:lenet-1:2"; });
  client_.FailNext(FakeSlurmClient::Call::kPoll, absl::UnavailableError("away"));
  EXPECT_EQ(launcher_.Cancel(*attempt).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(client_.cancelled(), IsEmpty());
  EXPECT_TRUE(launcher_.Cancel(*attempt).ok());
  EXPECT_THAT(client_.cancelled(), SizeIs(1));
}

TEST_F(SlurmLauncherTest, KnowsItsTagsAlone) {
  EXPECT_EQ(ParseSlurmComment("tandem:lenet-1:2"), (AttemptId{"lenet-1", 2}));
  for (const char* comment :
       {"", "tandem:", "tandem:a", "tandem::1", "tandem:a:0", "tandem:a:x", "tandem:a:1:2"}) {
    EXPECT_EQ(ParseSlurmComment(comment), std::nullopt) << comment;
  }
}

}  // namespace
}  // namespace tandem
