#include "server/clusters/ssh_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/clock.h"
#include "engine/base/field_violations.h"
#include "server/clusters/ssh/fake_host_client.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"

namespace tandem {
namespace {

using State = LaunchedAttempt::State;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class SshLauncherTest : public testing::Test {
 protected:
  SshLauncherTest() {
    hosts_.SetSize("a", 4, 2);
    hosts_.SetSize("b", 4, 2);
    Restart();
  }

  // As after a restart of the daemon.
  void Restart() {
    SshLauncher::Options options;
    options.hosts = {"a", "b"};
    options.jobs_folder = folder_.path();
    options.clock = &clock_;
    launcher_ = std::make_unique<SshLauncher>(std::move(options), &hosts_);
  }

  std::string FolderOf(const std::string& job_id, int attempt = 1) const {
    return JobFolder(absl::StrCat(folder_.path(), "/", job_id)).AttemptFolder(attempt);
  }
  LaunchRequest RequestOf(const std::string& job_id, int nodes, int gpus_per_node) {
    LaunchRequest request;
    request.job.set_name("jobs/" + job_id);
    request.job.set_attempt(1);
    request.job.set_folder(absl::StrCat(folder_.path(), "/", job_id));
    v1::JobSpec& spec = *request.job.mutable_spec();
    spec.mutable_cluster()->mutable_ssh()->set_nodes(nodes);
    spec.mutable_cluster()->mutable_ssh()->set_cpus_per_task(2);
    spec.mutable_replicas()->set_workers(nodes);
    spec.mutable_replicas()->set_count(nodes * std::max(1, gpus_per_node));
    spec.mutable_replicas()->set_device_kind(gpus_per_node > 0 ? v1::DEVICE_KIND_GPU : v1::DEVICE_KIND_CPU);
    request.command = {"/bin/true"};
    std::filesystem::create_directories(FolderOf(job_id));
    return request;
  }
  LaunchedAttempt Submit(const std::string& job_id, int nodes, int gpus_per_node = 0) {
    const auto submitted = launcher_->Submit(RequestOf(job_id, nodes, gpus_per_node));
    EXPECT_TRUE(submitted.ok()) << submitted.status();
    return submitted.value_or(LaunchedAttempt());
  }
  // Returns the job's attempt as the launcher sees it now; one without an id if the answer lacks it.
  LaunchedAttempt Seen(const std::string& job_id) {
    const auto answer = launcher_->Observe();
    EXPECT_TRUE(answer.ok());
    for (const LaunchedAttempt& attempt : *answer) {
      if (attempt.id.job_id == job_id) return attempt;
    }
    return {};
  }
  // As the script does at the beginning and at the end of a task.
  void WriteStart(const std::string& job_id, int rank, const std::string& host) {
    std::ofstream(FolderOf(job_id) + "/started") << host << "\n";
    std::ofstream(absl::StrCat(FolderOf(job_id), "/started-", rank)) << host << "\n";
  }
  void WriteEnd(const std::string& job_id, int rank, int code) {
    std::ofstream(absl::StrCat(FolderOf(job_id), "/ended-", rank)) << code << "\n";
  }

  const TemporaryFolder folder_;
  FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  FakeHostClient hosts_;
  std::unique_ptr<SshLauncher> launcher_;
};

TEST_F(SshLauncherTest, StartsTheTasksOfAnAttemptOnItsHosts) {
  EXPECT_EQ(Submit("job", 2, 2).state, State::kWaiting);
  const LaunchedAttempt seen = Seen("job");
  EXPECT_EQ(seen.state, State::kRunning);
  EXPECT_EQ(seen.handle, "job:1");
  EXPECT_THAT(seen.nodes, ElementsAre("a", "b"));
  EXPECT_EQ(seen.start, clock_.Now());
  ASSERT_THAT(hosts_.tasks("a"), SizeIs(1));
  ASSERT_THAT(hosts_.tasks("b"), SizeIs(1));
  EXPECT_EQ(hosts_.tasks("a")[0].rank, 0);
  EXPECT_EQ(hosts_.tasks("b")[0].rank, 1);
  EXPECT_EQ(hosts_.tasks("b")[0].workers, 2);
  EXPECT_EQ(hosts_.tasks("b")[0].cores, 2);
  EXPECT_THAT(hosts_.tasks("b")[0].gpus, ElementsAre(0, 1));
}

TEST_F(SshLauncherTest, AttemptsShareAHostAndNoGpu) {
  Submit("first", 1, 1);
  Submit("second", 1, 1);
  EXPECT_THAT(Seen("first").nodes, ElementsAre("a"));
  EXPECT_THAT(Seen("second").nodes, ElementsAre("a"));
  ASSERT_THAT(hosts_.tasks("a"), SizeIs(2));
  EXPECT_NE(hosts_.tasks("a")[0].gpus, hosts_.tasks("a")[1].gpus);
}

TEST_F(SshLauncherTest, NobodyOvertakesTheFirstThatWaits) {
  Submit("runs", 1);
  ASSERT_EQ(Seen("runs").state, State::kRunning);
  LaunchRequest low = RequestOf("low", 1, 0);
  low.job.set_priority(-1);
  ASSERT_TRUE(launcher_->Submit(low).ok());
  LaunchRequest large = RequestOf("large", 2, 0);
  large.job.mutable_spec()->mutable_cluster()->mutable_ssh()->set_cpus_per_task(4);
  ASSERT_TRUE(launcher_->Submit(large).ok());
  Submit("small", 1);
  EXPECT_EQ(Seen("large").state, State::kWaiting);
  // Two cores are free on "a" and four on "b".
  EXPECT_EQ(Seen("small").state, State::kWaiting);
  EXPECT_EQ(Seen("small").detail, "it is behind job large");
  EXPECT_EQ(Seen("low").detail, "it is behind job large");
  hosts_.End("a", "runs");
  EXPECT_EQ(Seen("large").state, State::kRunning);
  EXPECT_EQ(Seen("low").detail, "it is behind job small");
}

TEST_F(SshLauncherTest, NobodyWaitsForAJobThatNeedsAHostThatIsAway) {
  Seen("none");
  hosts_.SetAway("b", true);
  Submit("large", 2);
  Submit("small", 1);
  EXPECT_EQ(Seen("large").state, State::kWaiting);
  EXPECT_EQ(Seen("small").state, State::kRunning);
  hosts_.SetAway("b", false);
  EXPECT_EQ(Seen("large").state, State::kRunning);
}

TEST_F(SshLauncherTest, SaysWhyTheFirstWaits) {
  Submit("first", 2, 1);
  Submit("second", 2, 2);
  ASSERT_EQ(Seen("first").state, State::kRunning);
  EXPECT_EQ(Seen("second").detail, "it needs 2 hosts with 2 cores and 2 GPUs each, and too few are free");
  hosts_.SetAway("b", true);
  EXPECT_THAT(Seen("second").detail, HasSubstr("too few are free; cannot reach host b: it is away"));
}

TEST_F(SshLauncherTest, AnAttemptEndsWhenNoneOfItsTasksRuns) {
  Submit("job", 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "a");
  WriteStart("job", 1, "b");
  WriteEnd("job", 1, 0);
  hosts_.End("b", "job");
  EXPECT_EQ(Seen("job").state, State::kRunning);
  // Worker 0 writes the model meanwhile.
  clock_.Advance(absl::Minutes(3));
  EXPECT_EQ(Seen("job").state, State::kRunning);
  EXPECT_THAT(hosts_.signals(), IsEmpty());
  WriteEnd("job", 0, 0);
  hosts_.End("a", "job");
  EXPECT_EQ(Seen("job").state, State::kEnded);
  EXPECT_EQ(Seen("job").reason, v1::STATE_REASON_WORKER_LOST);
  clock_.Advance(absl::Minutes(6));
  EXPECT_EQ(Seen("job").id.job_id, "");
}

TEST_F(SshLauncherTest, AFailedTaskEndsTheOthers) {
  Submit("job", 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "a");
  WriteStart("job", 1, "b");
  WriteEnd("job", 1, 3);
  hosts_.End("b", "job");
  EXPECT_EQ(Seen("job").state, State::kRunning);
  EXPECT_THAT(hosts_.signals(),
              UnorderedElementsAre(FakeHostClient::Signal{"a", "job", HostStop::kTerminate},
                                   FakeHostClient::Signal{"b", "job", HostStop::kTerminate}));
  // It does not end by itself.
  Seen("job");
  EXPECT_THAT(hosts_.signals(), SizeIs(2));
  clock_.Advance(absl::Seconds(30));
  Seen("job");
  EXPECT_THAT(hosts_.signals(), SizeIs(4));
  EXPECT_EQ(hosts_.signals()[2].how, HostStop::kKill);
  EXPECT_EQ(Seen("job").state, State::kEnded);
  EXPECT_EQ(Seen("job").detail, "worker 1 exited with the code 3");
}

TEST_F(SshLauncherTest, ATaskThatVanishedEndsTheOthersAfterAWhile) {
  Submit("job", 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "a");
  WriteStart("job", 1, "b");
  // Its exit code may be on its way.
  hosts_.End("b", "job");
  Seen("job");
  clock_.Advance(absl::Seconds(29));
  Seen("job");
  EXPECT_THAT(hosts_.signals(), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Seen("job").state, State::kRunning);
  EXPECT_THAT(hosts_.signals(), SizeIs(2));
}

TEST_F(SshLauncherTest, AnAttemptOnAHostThatIsAwayIsUnknown) {
  Submit("job", 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  hosts_.SetAway("b", true);
  EXPECT_EQ(Seen("job").id.job_id, "");
  hosts_.SetAway("b", false);
  EXPECT_EQ(Seen("job").state, State::kRunning);
}

TEST_F(SshLauncherTest, ACancelledAttemptIsKilledAfterTheGrace) {
  Submit("job", 1);
  const LaunchedAttempt seen = Seen("job");
  ASSERT_TRUE(launcher_->Cancel(seen).ok());
  ASSERT_TRUE(launcher_->Cancel(seen).ok());
  EXPECT_THAT(hosts_.signals(), ElementsAre(FakeHostClient::Signal{"a", "job", HostStop::kTerminate}));
  clock_.Advance(absl::Seconds(30));
  EXPECT_EQ(Seen("job").state, State::kRunning);
  EXPECT_EQ(Seen("job").state, State::kEnded);
  EXPECT_EQ(Seen("job").reason, v1::STATE_REASON_CLUSTER_CANCELLED);
}

TEST_F(SshLauncherTest, ASignalWithoutAnAnswerIsSentAgain) {
  Submit("job", 1);
  const LaunchedAttempt seen = Seen("job");
  hosts_.SetAway("a", true);
  EXPECT_TRUE(absl::IsUnavailable(launcher_->Cancel(seen)));
  hosts_.SetAway("a", false);
  Seen("job");
  EXPECT_THAT(hosts_.signals(), ElementsAre(FakeHostClient::Signal{"a", "job", HostStop::kTerminate}));
}

TEST_F(SshLauncherTest, AHostThatIsAwayKeepsNoOtherHostFromSigkill) {
  Submit("job", 2);
  const LaunchedAttempt seen = Seen("job");
  hosts_.SetAway("b", true);
  EXPECT_TRUE(absl::IsUnavailable(launcher_->Cancel(seen)));
  clock_.Advance(absl::Seconds(30));
  Seen("job");
  EXPECT_THAT(hosts_.signals(), ElementsAre(FakeHostClient::Signal{"a", "job", HostStop::kTerminate},
                                            FakeHostClient::Signal{"a", "job", HostStop::kKill}));
}

TEST_F(SshLauncherTest, AStartThatOneHostRefusesEndsTheOthers) {
  hosts_.RefuseStart("b", absl::InternalError("host b says: /shared is missing"));
  Submit("job", 2);
  EXPECT_EQ(Seen("job").state, State::kRunning);
  EXPECT_THAT(hosts_.signals(), SizeIs(2));
  hosts_.End("a", "job");
  clock_.Advance(absl::Seconds(11));
  const LaunchedAttempt seen = Seen("job");
  EXPECT_EQ(seen.state, State::kEnded);
  EXPECT_EQ(seen.reason, v1::STATE_REASON_WORKER_START_FAILED);
  EXPECT_EQ(seen.detail, "cannot start on node b: host b says: /shared is missing");
}

TEST_F(SshLauncherTest, AHostThatAnswersNoStartGetsNoOtherUntilTheNextLook) {
  hosts_.RefuseStart("a", absl::UnavailableError("cannot reach host a: no answer within 20s"));
  Submit("first", 1);
  Submit("second", 1);
  EXPECT_EQ(Seen("second").state, State::kRunning);
  EXPECT_THAT(Seen("second").nodes, ElementsAre("b"));
}

TEST_F(SshLauncherTest, TheNextDaemonFindsAttemptsThatRunAndTheirShare) {
  Submit("job", 2, 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "a");
  WriteStart("job", 1, "b");
  Restart();
  const auto found = launcher_->TakeOver({"job", 1});
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->state, State::kRunning);
  Submit("next", 1, 1);
  EXPECT_EQ(Seen("next").state, State::kWaiting);
  EXPECT_THAT(Seen("job").nodes, ElementsAre("a", "b"));
}

TEST_F(SshLauncherTest, TheNextDaemonFindsAnAttemptThatEndedMeanwhile) {
  Submit("job", 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "a");
  WriteStart("job", 1, "b");
  WriteEnd("job", 0, 0);
  WriteEnd("job", 1, 0);
  hosts_.End("a", "job");
  hosts_.End("b", "job");
  hosts_.SetAway("b", true);
  Restart();
  const auto found = launcher_->TakeOver({"job", 1});
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_EQ((*found)->state, State::kRunning);
  // A task may still run on "b". While the attempt is missing from the answers, it may count as lost.
  EXPECT_EQ(Seen("job").id.job_id, "");
  hosts_.SetAway("b", false);
  EXPECT_EQ(Seen("job").state, State::kEnded);
}

TEST_F(SshLauncherTest, TheNextDaemonFindsAnAttemptWhoseHostsReturn) {
  Submit("job", 2);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "a");
  WriteStart("job", 1, "b");
  hosts_.SetAway("a", true);
  hosts_.SetAway("b", true);
  Restart();
  ASSERT_TRUE(launcher_->TakeOver({"job", 1})->has_value());
  EXPECT_EQ(Seen("job").id.job_id, "");
  hosts_.SetAway("a", false);
  hosts_.SetAway("b", false);
  EXPECT_EQ(Seen("job").state, State::kRunning);
  // Both tasks run: none is missing.
  clock_.Advance(absl::Minutes(1));
  EXPECT_EQ(Seen("job").state, State::kRunning);
  EXPECT_THAT(hosts_.signals(), IsEmpty());
}

TEST_F(SshLauncherTest, TheNextDaemonAsksEachHostOnceForAllAttempts) {
  for (int i = 0; i < 50; ++i) {
    const std::string job = absl::StrCat("job", i);
    Submit(job, 2);
    if (i % 2 == 0) WriteStart(job, 0, "b");
  }
  hosts_.SetAway("b", true);
  Restart();
  const int looks = hosts_.looks();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(launcher_->TakeOver({absl::StrCat("job", i), 1})->has_value(), i % 2 == 0);
  }
  EXPECT_EQ(hosts_.looks(), looks + 2);
}

TEST_F(SshLauncherTest, TheNextDaemonDoesNotFindAnAttemptThatWaited) {
  Submit("job", 1);
  Restart();
  hosts_.SetAway("b", true);
  const auto found = launcher_->TakeOver({"job", 1});
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->has_value());
}

TEST_F(SshLauncherTest, AnotherDaemonsAttemptsKeepTheirShareAndAreLeftAlone) {
  HostTask task;
  task.job_id = "foreign";
  task.attempt = 7;
  task.workers = 2;
  task.cores = 4;
  hosts_.Add("a", task);
  hosts_.Add("b", task);
  EXPECT_EQ(Seen("foreign").state, State::kRunning);
  Submit("job", 1);
  EXPECT_EQ(Seen("job").state, State::kWaiting);
  // Its other worker is gone, and its files are elsewhere.
  clock_.Advance(absl::Hours(1));
  Seen("foreign");
  EXPECT_THAT(hosts_.signals(), IsEmpty());
  hosts_.End("a", "foreign");
  hosts_.End("b", "foreign");
  EXPECT_EQ(Seen("job").state, State::kRunning);
}

// A hostile worker may write into the attempt's folder.
TEST_F(SshLauncherTest, BelievesOnlyHostsThatItKnows) {
  Submit("job", 1);
  ASSERT_EQ(Seen("job").state, State::kRunning);
  WriteStart("job", 0, "evil");
  hosts_.End("a", "job");
  EXPECT_EQ(Seen("job").state, State::kEnded);
  EXPECT_THAT(Seen("job").nodes, ElementsAre("a"));
}

TEST_F(SshLauncherTest, RefusesAScriptThatNoShellTakes) {
  LaunchRequest request = RequestOf("job", 1, 0);
  request.required_paths.assign(3000, "/data/" + std::string(60, 'x'));
  const absl::Status refused = launcher_->Submit(request).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("name fewer files in the job, such as a folder"));
}

TEST_F(SshLauncherTest, AsksNoHostWithoutAttempts) {
  Seen("none");
  const int looks = hosts_.looks();
  Seen("none");
  EXPECT_EQ(hosts_.looks(), looks);
}

TEST_F(SshLauncherTest, RefusesAJobThatIsTooLarge) {
  ASSERT_TRUE(launcher_->Partitions().ok());
  const auto refusal = [&](int nodes, int gpus, int cores) {
    LaunchRequest request = RequestOf("job", nodes, gpus);
    request.job.mutable_spec()->mutable_cluster()->mutable_ssh()->set_cpus_per_task(cores);
    return GetFieldViolations(launcher_->Test(request.job.spec()));
  };
  EXPECT_THAT(refusal(2, 2, 4), IsEmpty());
  ASSERT_THAT(refusal(3, 0, 1), SizeIs(1));
  EXPECT_EQ(refusal(3, 0, 1)[0].field, "nodes");
  EXPECT_EQ(refusal(1, 3, 1)[0].field, "nodes");
  EXPECT_EQ(refusal(1, 0, 5)[0].field, "cpus_per_task");
  EXPECT_EQ(refusal(1, 3, 1)[0].description,
            "the job needs 1 host with 1 core and 3 GPUs, and the daemon's hosts are a with 4 cores and 2 "
            "GPUs, b with 4 cores and 2 GPUs");
}

TEST_F(SshLauncherTest, StartsNothingOnTheSecondNameOfAMachine) {
  hosts_.SetMachine("a", "m");
  hosts_.SetMachine("b", "m");
  Submit("first", 1);
  Submit("second", 1);
  Submit("third", 1);
  EXPECT_EQ(Seen("first").state, State::kRunning);
  EXPECT_EQ(Seen("second").state, State::kRunning);
  EXPECT_EQ(Seen("third").state, State::kWaiting);
  EXPECT_THAT(Seen("third").detail, HasSubstr("host b is the same machine as host a"));
  EXPECT_THAT(hosts_.tasks("a"), SizeIs(2));
  EXPECT_THAT(hosts_.tasks("b"), IsEmpty());
  const auto refused = GetFieldViolations(launcher_->Test(RequestOf("job", 2, 0).job.spec()));
  ASSERT_THAT(refused, SizeIs(1));
  EXPECT_THAT(refused[0].description,
              HasSubstr("a with 4 cores and 2 GPUs, b, which is the same machine as a"));
  EXPECT_FALSE((*launcher_->Partitions())[1].is_up());
}

TEST_F(SshLauncherTest, AHostThatHangsDelaysNoListOfTheHosts) {
  Submit("job", 1);
  size_t listed = 0;
  hosts_.OnStart([&] {
    clock_.Advance(absl::Minutes(1));
    listed = launcher_->Partitions()->size();
  });
  Seen("job");
  EXPECT_EQ(listed, 2u);
}

TEST_F(SshLauncherTest, EachHostIsAPartition) {
  Submit("job", 1);
  Seen("job");
  hosts_.SetAway("b", true);
  clock_.Advance(absl::Minutes(1));
  const auto partitions = launcher_->Partitions();
  ASSERT_TRUE(partitions.ok());
  ASSERT_THAT(*partitions, SizeIs(2));
  EXPECT_EQ((*partitions)[0].name(), "a");
  EXPECT_TRUE((*partitions)[0].is_up());
  EXPECT_EQ((*partitions)[0].free_nodes(), 0);
  EXPECT_EQ((*partitions)[0].cpus_per_node(), 4);
  EXPECT_EQ((*partitions)[0].gpus_per_node(), 2);
  EXPECT_FALSE((*partitions)[1].is_up());
}

}  // namespace
}  // namespace tandem
