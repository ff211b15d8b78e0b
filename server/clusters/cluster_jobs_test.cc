#include "server/clusters/cluster_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ringbuffer_sink.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "server/clusters/cluster_jobs_fixture.h"
#include "server/workers/launch_file.h"
#include "server/workers/spool.h"
#include "server/workers/worker_protocol.h"
#include "third_party/spdlog/log.h"

namespace tandem {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Keeps the lines of the log while it exists.
class KeptLog {
 public:
  KeptLog() { spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_)); }
  ~KeptLog() { spdlog::set_default_logger(before_); }
  KeptLog(const KeptLog&) = delete;
  KeptLog& operator=(const KeptLog&) = delete;

  // Returns the number of lines that contain `text`.
  int Count(absl::string_view text) const {
    const std::vector<std::string> lines = sink_->last_formatted();
    return static_cast<int>(std::count_if(
        lines.begin(), lines.end(), [&](const std::string& line) { return absl::StrContains(line, text); }));
  }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
};
TEST_F(ClusterJobsTest, SubmitsAnAttemptAndShowsItsPlaceInTheQueue) {
  Begin();
  const AttemptId id = Start();
  EXPECT_EQ(cluster_->WaitingOf(id.job_id)->message(),
            "the fake cluster job 1 waits in its queue: Resources.");
  const std::string launch_path = FolderOf(id).LaunchPath(id.attempt);
  EXPECT_THAT(launcher_.submitted()[0].command, ElementsAre("/bin/true", "--launch", launch_path));
  struct stat file = {};
  ASSERT_EQ(stat(launch_path.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
  const auto launch = ReadLaunchFile(FolderOf(id), id.attempt);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->output_folder(), FolderOf(id).AttemptFolder(id.attempt));
  EXPECT_EQ(launch->daemon_certificate(), "certificate");
  EXPECT_FALSE(launch->secret().empty());
  launcher_.Change(id, [](LaunchedAttempt& attempt) { attempt.state = State::kRunning; });
  EXPECT_TRUE(Eventually([&] { return !cluster_->WaitingOf(id.job_id).has_value(); }));
}

TEST_F(ClusterJobsTest, AppliesTheSpoolOfAnEndedAttempt) {
  Begin();
  const AttemptId id = Start();
  {
    auto spool = SpoolWriter::Create(FolderOf(id).SpoolPath(id.attempt));
    ASSERT_TRUE(spool.ok()) << spool.status();
    ASSERT_TRUE((*spool)->Append(Started(1)).ok());
    ASSERT_TRUE((*spool)->Append(Finished(2, v1::JOB_STATE_SUCCEEDED)).ok());
  }
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/job.yaml") << "name: job\n";
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/model.safetensors") << "model";
  End(id, v1::STATE_REASON_WORKER_LOST, "COMPLETED");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_SUCCEEDED));
  ASSERT_TRUE(Eventually([&] { return released().size() == 1; }));
  EXPECT_THAT(released(), ElementsAre(absl::StrCat(id.job_id, "/1")));
  EXPECT_TRUE(std::filesystem::exists(FolderOf(id).path() + "/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(FolderOf(id).AttemptFolder(id.attempt) + "/model.safetensors"));
}

TEST_F(ClusterJobsTest, AFileIsInTheJobsFolderBeforeItsEvent) {
  Begin();
  const AttemptId id = Start();
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/job.yaml") << "name: job\n";
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/best.safetensors") << "best";
  internal::v1::WorkerEvent event = ProgressAt(1, 1);
  cluster_->BeforeApply(id.job_id, id.attempt, {event});
  EXPECT_FALSE(std::filesystem::exists(FolderOf(id).path() + "/best.safetensors"));
  event.mutable_report()->mutable_artifact()->set_name("best.safetensors");
  cluster_->BeforeApply(id.job_id, id.attempt + 1, {event});
  EXPECT_FALSE(std::filesystem::exists(FolderOf(id).path() + "/best.safetensors"));
  cluster_->BeforeApply(id.job_id, id.attempt, {event});
  EXPECT_TRUE(std::filesystem::exists(FolderOf(id).path() + "/best.safetensors"));
}

TEST_F(ClusterJobsTest, AStartedAttemptHasItsNumberAndItsNodesUntilItsWorkerConnects) {
  Begin();
  const AttemptId id = Start();
  launcher_.Change(id, [](LaunchedAttempt& attempt) {
    attempt.state = State::kRunning;
    attempt.nodes = {"n7", "n8"};
  });
  EXPECT_TRUE(Eventually([&] {
    const auto waiting = cluster_->WaitingOf(id.job_id);
    return waiting.has_value() && waiting->message() ==
                                      "the fake cluster job 1 runs on n7, n8; its first worker has not "
                                      "reported yet.";
  }));
}

TEST_F(ClusterJobsTest, AJobHasTheNumberAndTheNodesOfItsNewestAttempt) {
  Begin();
  const AttemptId id = Start();
  const auto attempt = [&] { return jobs_.Get(id.job_id).cluster_attempt(); };
  ASSERT_TRUE(Eventually([&] { return attempt().id() == "1"; }));
  EXPECT_THAT(attempt().nodes(), IsEmpty());
  launcher_.Change(id, [](LaunchedAttempt& launched) {
    launched.state = State::kRunning;
    launched.nodes = {"n7", "n8"};
  });
  ASSERT_TRUE(Eventually([&] { return attempt().nodes_size() == 2; }));
  EXPECT_THAT(attempt().nodes(), ElementsAre("n7", "n8"));
  // The next daemon does not repeat the notice.
  Restart();
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 5; }));
  std::vector<std::string> notices;
  for (const v1::JobEvent& event : jobs_.Log(id.job_id)) {
    if (event.has_notice()) notices.push_back(event.notice().message());
  }
  EXPECT_THAT(notices, ElementsAre("Submitted to the fake cluster as job 1.",
                                   "the fake cluster job 1 runs on n7, n8."));
  End(id, v1::STATE_REASON_CLUSTER_PREEMPTED, "PREEMPTED");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_EQ(attempt().id(), "1");
  EXPECT_THAT(attempt().nodes(), ElementsAre("n7", "n8"));
  Awaited<absl::StatusOr<v1::Job>> scheduled;
  jobs_.machine().Schedule(id.job_id, {}, scheduled.Done());
  const auto again = scheduled.Get();
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->has_cluster_attempt());
}

TEST_F(ClusterJobsTest, AnAttemptThatEndsBetweenTwoObservationsHasItsNodes) {
  Begin();
  const AttemptId id = Start();
  launcher_.Change(id, [](LaunchedAttempt& launched) { launched.nodes = {"n7"}; });
  ASSERT_TRUE(jobs_.Apply(id.job_id, id.attempt, {Started(1), Finished(2, v1::JOB_STATE_SUCCEEDED)}).ok());
  const size_t events = jobs_.Log(id.job_id).size();
  End(id, v1::STATE_REASON_WORKER_LOST, "COMPLETED");
  ASSERT_TRUE(Eventually([&] { return jobs_.Get(id.job_id).cluster_attempt().nodes_size() == 1; }));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(jobs_.Get(id.job_id).cluster_attempt().nodes(0), "n7");
  // The log was complete.
  EXPECT_EQ(jobs_.Log(id.job_id).size(), events);
}

TEST_F(ClusterJobsTest, AWorkerThatDoesNotConnectIsToldOnce) {
  Begin();
  const AttemptId id = Start();
  launcher_.Change(id, [](LaunchedAttempt& attempt) {
    attempt.state = State::kRunning;
    attempt.nodes = {"n7"};
  });
  const auto notices = [&] {
    std::vector<std::string> texts;
    for (const v1::JobEvent& event : jobs_.Log(id.job_id)) {
      if (absl::StrContains(event.notice().message(), "has not connected")) {
        texts.push_back(event.notice().message());
      }
    }
    return texts;
  };
  const auto observe_for_long = [&] {
    const int before = launcher_.observations();
    ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 30; }));
  };
  // The node still runs the cluster's own programs.
  observe_for_long();
  EXPECT_THAT(notices(), IsEmpty());
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/started") << "1 n7\n";
  ASSERT_TRUE(Eventually([&] { return !notices().empty(); }));
  observe_for_long();
  EXPECT_THAT(notices(),
              ElementsAre(absl::StrCat(
                  "The worker of the fake cluster job 1 has not connected 150ms after its start: its node n7 "
                  "may not reach the daemon at 127.0.0.1:1 (--worker-listen). The worker's log says more: "
                  "tandem logs ",
                  id.job_id)));
}

TEST_F(ClusterJobsTest, ANodeWithoutTheAttemptsFolderIsNamed) {
  Begin();
  const AttemptId id = Start();
  launcher_.Change(id, [](LaunchedAttempt& attempt) { attempt.nodes = {"n7", "n8"}; });
  End(id, v1::STATE_REASON_WORKER_LOST, "FAILED");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(
      jobs_.Get(id.job_id).message(),
      HasSubstr(absl::StrCat("job 1 cannot start on node n7: it cannot write ", FolderOf(id).AttemptFolder(1),
                             "/batch.log; every node needs the folder ", FolderOf(id).AttemptFolder(1))));
  const AttemptId begun = Start();
  std::ofstream(FolderOf(begun).AttemptFolder(1) + "/batch.log") << "no such command\n";
  launcher_.Change(begun, [](LaunchedAttempt& attempt) { attempt.nodes = {"n7", "n8"}; });
  End(begun, v1::STATE_REASON_WORKER_LOST, "FAILED");
  ASSERT_TRUE(WaitForState(begun.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(jobs_.Get(begun.job_id).message(), HasSubstr("output: no such command"));
}

// Slurm kills the other tasks, so the script's exit code is theirs.
TEST_F(ClusterJobsTest, APathThatANodeLacksFailsTheJobAfterOneMoreTry) {
  Begin();
  const AttemptId id = Start();
  std::ofstream(FolderOf(id).AttemptFolder(1) + "/started") << "1 n1\n";
  std::ofstream(FolderOf(id).AttemptFolder(1) + "/ended") << "137\n";
  std::ofstream(FolderOf(id).AttemptFolder(1) + "/missing")
      << "cannot start on node n2: /data is missing; every node needs this path\n";
  std::ofstream(FolderOf(id).path() + "/worker-0.log") << "worker begins\n";
  End(id, v1::STATE_REASON_WORKER_LOST, "FAILED");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(
      jobs_.Get(id.job_id).message(),
      HasSubstr("the fake cluster job 1: cannot start on node n2: /data is missing; every node needs this "
                "path. It starts again in 1 s"));
  Awaited<absl::StatusOr<v1::Job>> scheduled;
  jobs_.machine().Schedule(id.job_id, {}, scheduled.Done());
  scheduled_ = *scheduled.Get();
  cluster_->Start(scheduled_, {});
  const AttemptId second = {id.job_id, 2};
  ASSERT_TRUE(Eventually([&] { return launcher_.submitted().size() == 2; }));
  // A node without the shared folder cannot write the file "missing".
  std::ofstream(FolderOf(id).AttemptFolder(2) + "/batch.log")
      << "cannot start on node n2: /shared is missing; every node needs this path\n"
      << "srun: error: n2: task 1: Exited with exit code 76\n";
  End(second, v1::STATE_REASON_WORKER_LOST, "FAILED");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_FAILED));
  EXPECT_EQ(jobs_.Get(id.job_id).reason(), v1::STATE_REASON_WORKER_START_FAILED);
  EXPECT_THAT(jobs_.Get(id.job_id).message(), HasSubstr("cannot start on node n2: /shared is missing"));
}

TEST_F(ClusterJobsTest, AnEndOfTheClusterRestartsTheJobOrFailsIt) {
  Begin();
  const AttemptId preempted = Start();
  End(preempted, v1::STATE_REASON_CLUSTER_PREEMPTED, "PREEMPTED");
  ASSERT_TRUE(WaitForState(preempted.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_EQ(jobs_.Get(preempted.job_id).reason(), v1::STATE_REASON_RESTARTING);
  EXPECT_THAT(jobs_.Get(preempted.job_id).message(), HasSubstr("job 1 ended: PREEMPTED."));
  const AttemptId too_large = Start();
  End(too_large, v1::STATE_REASON_CLUSTER_OUT_OF_MEMORY, "OUT_OF_MEMORY");
  ASSERT_TRUE(WaitForState(too_large.job_id, v1::JOB_STATE_FAILED));
  EXPECT_EQ(jobs_.Get(too_large.job_id).reason(), v1::STATE_REASON_CLUSTER_OUT_OF_MEMORY);
}

TEST_F(ClusterJobsTest, ALostAnswerIsNoSecondSubmission) {
  Begin();
  launcher_.LoseNextAnswer();
  const AttemptId id = Schedule();
  cluster_->Start(scheduled_, {});
  ASSERT_TRUE(Eventually([&] {
    const auto waiting = cluster_->WaitingOf(id.job_id);
    return waiting.has_value() && absl::StrContains(waiting->message(), "job 1 waits");
  }));
  EXPECT_THAT(launcher_.submitted(), SizeIs(1));
}

TEST_F(ClusterJobsTest, ARefusedAttemptIsTheJobsFailure) {
  Begin();
  launcher_.RefuseNext(absl::InvalidArgumentError("no such partition"));
  const AttemptId id = Schedule();
  cluster_->Start(scheduled_, {});
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(jobs_.Get(id.job_id).message(), HasSubstr("no such partition"));
  EXPECT_THAT(launcher_.submitted(), IsEmpty());
}

// As with a limit of the user's jobs in Slurm (MaxSubmitJobs).
TEST_F(ClusterJobsTest, AnAttemptBeyondALimitOfJobsWaitsAndIsSubmittedAgain) {
  Begin();
  launcher_.SetFull(true);
  const AttemptId id = Schedule();
  cluster_->Start(scheduled_, {});
  const auto says = [&] {
    const auto waiting = cluster_->WaitingOf(id.job_id);
    return waiting.has_value() ? waiting->message() : "";
  };
  const std::string why = "The daemon submits it to the fake cluster again and again: too many jobs.";
  ASSERT_TRUE(Eventually([&] { return says() == why; }));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_STARTING);
  launcher_.SetFull(false);
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(says(), "job 1 waits"); }));
  // The loss of the attempt has nothing to do with the former limit.
  End(id, v1::STATE_REASON_CLUSTER_NODE_FAILED, "NODE_FAIL");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(jobs_.Get(id.job_id).message(), HasSubstr("job 1 ended: NODE_FAIL."));
  EXPECT_EQ(jobs_.Get(id.job_id).attempt(), 1);
}

// A cluster would not answer a thousand submissions each half minute.
TEST_F(ClusterJobsTest, ARefusalBecauseOfALimitAnswersForAllJobsOfTheLimit) {
  resubmit_every_ = absl::Hours(1);
  Restart();
  launcher_.SetFull(true);
  for (int i = 0; i < 4; ++i) StartAtLimit();
  EXPECT_EQ(launcher_.aborted(), 1);
  for (int i = 0; i < 2; ++i) StartAtLimit("other");
  EXPECT_EQ(launcher_.aborted(), 2);
}

TEST_F(ClusterJobsTest, TheOldestJobIsTheFirstBelowALimit) {
  resubmit_every_ = absl::Milliseconds(300);
  Restart();
  launcher_.SetFull(true);
  std::vector<std::string> ids;
  for (int i = 0; i < 8; ++i) {
    jobs_.clock().Advance(absl::Seconds(1));
    ids.push_back(StartAtLimit().job_id);
  }
  launcher_.SetFull(false);
  ASSERT_TRUE(Eventually([&] { return launcher_.submitted().size() == ids.size(); }));
  std::vector<std::string> submitted;
  for (const LaunchRequest& request : launcher_.submitted()) {
    submitted.push_back(JobId(request.job.name()));
  }
  EXPECT_EQ(submitted, ids);
}

TEST_F(ClusterJobsTest, AbsenceIsNoFailureUntilWholeAnswersLackTheAttemptForLong) {
  Begin();
  const AttemptId id = Start();
  launcher_.Change(id, [](LaunchedAttempt& attempt) { attempt.state = State::kRunning; });
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/started") << "1 n1\n";
  launcher_.SetAway(true);
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 60; }));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_STARTING);
  launcher_.Forget(id);
  launcher_.SetAway(false);
  const absl::Time forgotten = absl::Now();
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_GE(absl::Now() - forgotten, absl::Milliseconds(290));
  EXPECT_THAT(jobs_.Get(id.job_id).message(), HasSubstr("is unknown to the fake cluster"));
}

TEST_F(ClusterJobsTest, TheQueueSaysSinceWhenTheClusterIsAway) {
  const KeptLog log;
  Begin();
  const AttemptId id = Start();
  launcher_.SetAway(true);
  const auto message = [&] { return cluster_->WaitingOf(id.job_id)->message(); };
  ASSERT_TRUE(Eventually([&] { return absl::StrContains(message(), "has not answered since"); }));
  const std::string first = message();
  EXPECT_THAT(first, testing::MatchesRegex(
                         "the fake cluster job 1 waits in its queue: Resources. the fake "
                         "cluster has not answered since [0-9-]+ [0-9:]+ UTC: the cluster is away."));
  // This submission fails before the cluster is asked, so its error is no answer.
  launcher_.RefuseNext(absl::InternalError("the disk is broken"));
  const AttemptId other = Schedule();
  cluster_->Start(scheduled_, {});
  ASSERT_TRUE(WaitForState(other.job_id, v1::JOB_STATE_QUEUED));
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 3; }));
  EXPECT_EQ(message(), first);
  EXPECT_EQ(log.Count("does not answer"), 1);
  EXPECT_EQ(log.Count("answers again"), 0);
  launcher_.SetAway(false);
  ASSERT_TRUE(Eventually([&] { return !absl::StrContains(message(), "has not answered"); }));
  EXPECT_EQ(log.Count("answers again"), 1);
  // Without its programs, the cluster gives no answer either.
  launcher_.RefuseNext(absl::FailedPreconditionError("cannot run sbatch"));
  const AttemptId last = Schedule();
  cluster_->Start(scheduled_, {});
  ASSERT_TRUE(WaitForState(last.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_EQ(log.Count("the fake cluster does not answer: FAILED_PRECONDITION: cannot run sbatch"), 1);
  cluster_->Stop();
}

TEST_F(ClusterJobsTest, AnAttemptThatIsForgottenBeforeItsStartIsQueuedAgain) {
  Begin();
  const AttemptId id = Start();
  launcher_.SetAway(true);
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 60; }));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_STARTING);
  launcher_.Forget(id);
  launcher_.SetAway(false);
  const absl::Time forgotten = absl::Now();
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_GE(absl::Now() - forgotten, absl::Milliseconds(90));
  EXPECT_EQ(jobs_.Get(id.job_id).reason(), v1::STATE_REASON_REQUEUED);
  ASSERT_TRUE(Eventually([&] { return !released().empty(); }));
  EXPECT_THAT(released(), ElementsAre(absl::StrCat(id.job_id, "/1")));
}

// The file "started" may be invisible, for example while the file system's answers are old.
TEST_F(ClusterJobsTest, ARunningAttemptThatIsForgottenIsLost) {
  Begin();
  const AttemptId id = Start();
  ASSERT_TRUE(jobs_.Apply(id.job_id, id.attempt, {Started(1)}).ok());
  const absl::Time forgotten = absl::Now();
  launcher_.Forget(id);
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_GE(absl::Now() - forgotten, absl::Milliseconds(290));
  EXPECT_EQ(jobs_.Get(id.job_id).reason(), v1::STATE_REASON_RESTARTING);
  ASSERT_TRUE(Eventually([&] { return !released().empty(); }));
  EXPECT_THAT(released(), ElementsAre(absl::StrCat(id.job_id, "/1")));
}

// As after `scontrol requeuehold` of a job whose node died.
TEST_F(ClusterJobsTest, ARunningAttemptThatIsBackInTheQueueIsLost) {
  Begin();
  const AttemptId id = Start();
  ASSERT_TRUE(jobs_.Apply(id.job_id, id.attempt, {Started(1)}).ok());
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_EQ(jobs_.Get(id.job_id).reason(), v1::STATE_REASON_RESTARTING);
  EXPECT_THAT(
      jobs_.Get(id.job_id).message(),
      HasSubstr("job 1 began, but now waits in or is unknown to the fake cluster, and its workers were "
                "silent, for more than 300ms."));
  EXPECT_THAT(launcher_.cancelled(), Contains(id));
}

TEST_F(ClusterJobsTest, AnAttemptInTheQueueThatNeverBeganIsAwaited) {
  Begin();
  const AttemptId id = Start();
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 60; }));
  EXPECT_EQ(jobs_.Get(id.job_id).state(), v1::JOB_STATE_STARTING);
  EXPECT_THAT(launcher_.cancelled(), IsEmpty());
}

TEST_F(ClusterJobsTest, AnAttemptThatSaidItsEndIsNotAwaited) {
  Begin();
  const AttemptId id = Start();
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/ended") << "7\n";
  launcher_.Forget(id);
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
}

TEST_F(ClusterJobsTest, TheNextDaemonTakesOverAnAttempt) {
  Begin();
  const AttemptId id = Start();
  Restart();
  ASSERT_TRUE(Eventually(
      [&] { return cluster_->WaitingOf(id.job_id)->message().find("waits") != std::string::npos; }));
  EXPECT_THAT(launcher_.submitted(), SizeIs(1));
  End(id, v1::STATE_REASON_CLUSTER_NODE_FAILED, "NODE_FAIL");
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
}

TEST_F(ClusterJobsTest, TheNextDaemonQueuesAnUnsubmittedAttemptAgain) {
  const AttemptId id = Schedule();
  Restart();
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_EQ(jobs_.Get(id.job_id).reason(), v1::STATE_REASON_REQUEUED);
  EXPECT_THAT(launcher_.submitted(), IsEmpty());
}

TEST_F(ClusterJobsTest, TheNextDaemonDoesNotRepeatAnAttemptThatWasStarted) {
  const AttemptId id = Schedule();
  std::filesystem::create_directories(FolderOf(id).AttemptFolder(id.attempt));
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/started") << "1 n1\n";
  Restart();
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_EQ(jobs_.Get(id.job_id).reason(), v1::STATE_REASON_RESTARTING);
}

TEST_F(ClusterJobsTest, TheNextDaemonSettlesAnAttemptThatEndedMeanwhile) {
  Begin();
  const AttemptId id = Start();
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/started") << "1 n1\n";
  std::ofstream(FolderOf(id).AttemptFolder(id.attempt) + "/ended") << "76\n";
  std::ofstream(FolderOf(id).path() + "/worker-0.log") << "cannot start on node n1: /data is missing\n";
  cluster_->Stop();
  launcher_.Forget(id);
  Restart();
  ASSERT_TRUE(WaitForState(id.job_id, v1::JOB_STATE_QUEUED));
  EXPECT_THAT(jobs_.Get(id.job_id).message(), HasSubstr("/data is missing"));
}

TEST_F(ClusterJobsTest, CancelsStraysOfItsOwnJobsAlone) {
  Begin();
  const AttemptId id = Start();
  LaunchedAttempt old, foreign;
  old.id = {id.job_id, 7};
  foreign.id = {"another-daemons-job", 1};
  launcher_.Add(old);
  launcher_.Add(foreign);
  ASSERT_TRUE(Eventually([&] { return !launcher_.cancelled().empty(); }));
  const int before = launcher_.observations();
  ASSERT_TRUE(Eventually([&] { return launcher_.observations() > before + 5; }));
  EXPECT_THAT(launcher_.cancelled(), ElementsAre(old.id));
}

TEST_F(ClusterJobsTest, AdmitsTheFirstWorkerWithTheSecretAlone) {
  Begin();
  const AttemptId id = Start();
  internal::v1::Hello hello;
  hello.set_job_id(id.job_id);
  hello.set_attempt(id.attempt);
  hello.set_protocol(kWorkerProtocol);
  hello.set_secret("wrong");
  EXPECT_THAT(std::string(cluster_->Admit(hello, nullptr).message()), HasSubstr("the secret is wrong"));
  hello.set_secret(ReadLaunchFile(FolderOf(id), id.attempt)->secret());
  hello.set_worker(1);
  EXPECT_THAT(std::string(cluster_->Admit(hello, nullptr).message()), HasSubstr("worker 1 must not report"));
  hello.set_worker(0);
  EXPECT_TRUE(cluster_->Admit(hello, nullptr).ok());
  hello.set_attempt(2);
  EXPECT_FALSE(cluster_->Admit(hello, nullptr).ok());
}

}  // namespace
}  // namespace tandem
