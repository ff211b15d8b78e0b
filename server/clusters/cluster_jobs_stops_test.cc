// Tests of stops of jobs on a cluster: cancellations and pauses, by the daemon and by others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "server/clusters/cluster_jobs_fixture.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ClusterJobsStopsTest : public ClusterJobsTest {};

TEST_F(ClusterJobsStopsTest, APersonsCancellationIsFinal) {
  Begin();
  const AttemptId waiting = Start();
  End(waiting, v1::STATE_REASON_CLUSTER_CANCELLED, "CANCELLED");
  ASSERT_TRUE(WaitForState(waiting.job_id, v1::JOB_STATE_FAILED));
  EXPECT_EQ(jobs_.Get(waiting.job_id).message(),
            "the fake cluster job 1 was cancelled before it started, and not through the daemon.");

  const AttemptId running = Start();
  std::ofstream(FolderOf(running).AttemptFolder(running.attempt) + "/started") << "1 n1\n";
  std::ofstream(FolderOf(running).AttemptFolder(running.attempt) + "/ended") << "143 SIGTERM\n";
  launcher_.Change(running, [](LaunchedAttempt& attempt) {
    attempt.nodes = {"n1"};
    attempt.start = absl::Now() - absl::Seconds(1);
  });
  End(running, v1::STATE_REASON_CLUSTER_CANCELLED, "CANCELLED");
  ASSERT_TRUE(WaitForState(running.job_id, v1::JOB_STATE_FAILED));
  EXPECT_EQ(jobs_.Get(running.job_id).message(),
            "the fake cluster job 2 was cancelled while it ran, and not through the daemon.");
}

// A killed controller forgets its last seconds.
TEST_F(ClusterJobsStopsTest, ACancellationByTheClusterItselfIsALoss) {
  Begin();
  // The controller forgot the start, and the script ended by itself.
  const AttemptId ended = Start();
  std::ofstream(FolderOf(ended).AttemptFolder(ended.attempt) + "/started") << "1 n1\n";
  std::ofstream(FolderOf(ended).AttemptFolder(ended.attempt) + "/ended") << "1\n";
  End(ended, v1::STATE_REASON_CLUSTER_CANCELLED, "CANCELLED");
  ASSERT_TRUE(WaitForState(ended.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(jobs_.Get(ended.job_id).message(), HasSubstr("ended with the exit code 1."));

  // The controller started the job again, and cancelled it because the node still had it.
  const AttemptId again = Start();
  std::ofstream(FolderOf(again).AttemptFolder(again.attempt) + "/started") << "2 n1\n";
  std::ofstream(FolderOf(again).AttemptFolder(again.attempt) + "/ended") << "143 SIGTERM\n";
  launcher_.Change(again, [](LaunchedAttempt& attempt) { attempt.start = absl::Now() + absl::Seconds(10); });
  End(again, v1::STATE_REASON_CLUSTER_CANCELLED, "CANCELLED");
  ASSERT_TRUE(WaitForState(again.job_id, v1::JOB_STATE_QUEUED));

  // The node could not start the script.
  const AttemptId unstarted = Start();
  launcher_.Change(unstarted, [](LaunchedAttempt& attempt) { attempt.nodes = {"n1"}; });
  End(unstarted, v1::STATE_REASON_CLUSTER_CANCELLED, "CANCELLED");
  ASSERT_TRUE(WaitForState(unstarted.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(jobs_.Get(unstarted.job_id).message(), HasSubstr("ended: CANCELLED."));
}

TEST_F(ClusterJobsStopsTest, ACancelledAttemptThatIsForgottenBeforeItsStartEnds) {
  Begin();
  const AttemptId id = Start();
  launcher_.Change(id, [](LaunchedAttempt& attempt) { attempt.state = State::kRunning; });
  ASSERT_TRUE(Eventually([&] { return !cluster_->WaitingOf(id.job_id).has_value(); }));
  launcher_.Forget(id);
  ASSERT_TRUE(jobs_.Cancel(id.job_id).ok());
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_CANCELLED));
}

TEST_F(ClusterJobsStopsTest, CancelsAWaitingAttemptAtOnce) {
  Begin();
  const AttemptId id = Start();
  ASSERT_TRUE(jobs_.Cancel(id.job_id).ok());
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_CANCELLED));
  EXPECT_EQ(jobs_.Get(id.job_id).message(),
            "Cancelled. the fake cluster job 1 was cancelled before it started.");
  EXPECT_THAT(launcher_.cancelled(), ElementsAre(id));
}

// Such an attempt never began, so it is not back in the queue.
TEST_F(ClusterJobsStopsTest, AStopOfAWaitingAttemptLastsUntilTheClusterHasEndedIt) {
  Begin();
  const AttemptId id = Start();
  launcher_.SetDeaf(true);
  ASSERT_TRUE(jobs_.Cancel(id.job_id).ok());
  // Longer than the limit of absence.
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 60; }));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_CANCELLING);
  launcher_.SetDeaf(false);
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_CANCELLED));
  EXPECT_EQ(jobs_.Get(id.job_id).message(),
            "Cancelled. the fake cluster job 1 was cancelled before it started.");
}

TEST_F(ClusterJobsStopsTest, AStopOfAnAttemptBeyondALimitOfJobsIsDoneAtOnce) {
  resubmit_every_ = absl::Hours(1);
  Restart();
  launcher_.SetFull(true);
  const std::string cancelled = StartAtLimit().job_id;
  const std::string paused = StartAtLimit().job_id;
  const std::string left = StartAtLimit().job_id;
  ASSERT_TRUE(jobs_.Cancel(cancelled).ok());
  ASSERT_TRUE(WaitForState(cancelled, v1::JOB_STATE_CANCELLED));
  ASSERT_TRUE(jobs_.Pause(paused).ok());
  ASSERT_TRUE(WaitForState(paused, v1::JOB_STATE_PAUSED));
  // The next daemon queues the rest again.
  Restart();
  ASSERT_TRUE(WaitForState(left, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(launcher_.submitted(), IsEmpty());
}

// A rank may never come. Its first worker then waits for the rank, and does not stop by itself.
TEST_F(ClusterJobsStopsTest, AStopBeforeTheTrainingEndsTheAttemptAtOnce) {
  cancel_grace_ = absl::Hours(1);
  Restart();
  const auto started = [&] {
    const AttemptId id = Start();
    launcher_.Change(id, [](LaunchedAttempt& attempt) {
      attempt.state = State::kRunning;
      attempt.nodes = {"n1", "n2"};
    });
    std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/started") << "1 n1\n";
    EXPECT_TRUE(Eventually([&] {
      const auto waiting = cluster_->WaitingOf(id.job_id);
      return waiting.has_value() && absl::StrContains(waiting->message(), "runs on n1, n2");
    }));
    return id;
  };
  const AttemptId cancelled = started();
  ASSERT_TRUE(jobs_.Cancel(cancelled.job_id).ok());
  ASSERT_TRUE(WaitForState(cancelled.job_id, v1::JOB_STATE_CANCELLED));
  EXPECT_THAT(launcher_.cancelled(), ElementsAre(cancelled));
  const AttemptId paused = started();
  ASSERT_TRUE(jobs_.Pause(paused.job_id).ok());
  ASSERT_TRUE(WaitForState(paused.job_id, v1::JOB_STATE_PAUSED));
  EXPECT_THAT(launcher_.cancelled(), ElementsAre(cancelled, paused));
  // A training has time to write its checkpoint.
  const AttemptId training = started();
  ASSERT_TRUE(jobs_.Apply(training.job_id, training.attempt, {Started(1)}).ok());
  EXPECT_FALSE(cluster_->WaitingOf(training.job_id).has_value());
  ASSERT_TRUE(jobs_.Cancel(training.job_id).ok());
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 30; }));
  EXPECT_EQ(jobs_.Get(training.job_id).state(), v1::JOB_STATE_CANCELLING);
  EXPECT_THAT(launcher_.cancelled(), SizeIs(2));
}

TEST_F(ClusterJobsStopsTest, AStopThatWaitsForTheClusterSaysSo) {
  Begin();
  const AttemptId id = Start();
  launcher_.SetAway(true);
  ASSERT_TRUE(jobs_.Cancel(id.job_id).ok());
  const auto message = [&] {
    const auto waiting = cluster_->WaitingOf(id.job_id);
    return waiting.has_value() ? waiting->message() : "";
  };
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(message(), "has not answered since"); }));
  EXPECT_THAT(message(), testing::MatchesRegex(
                             "the fake cluster has not answered since [0-9-]+ [0-9:]+ UTC: the cluster is "
                             "away. The stop continues by itself when the fake cluster answers."));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_CANCELLING);
  launcher_.SetAway(false);
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_CANCELLED));
  EXPECT_EQ(message(), "");
}

TEST_F(ClusterJobsStopsTest, PausesAWaitingAttemptAtOnce) {
  Begin();
  const AttemptId id = Start();
  ASSERT_TRUE(jobs_.Pause(id.job_id).ok());
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_PAUSED));
  EXPECT_THAT(launcher_.cancelled(), ElementsAre(id));
}

}  // namespace
}  // namespace tandem
