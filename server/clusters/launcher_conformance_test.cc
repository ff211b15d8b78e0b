#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "server/clusters/fake_launcher.h"
#include "server/clusters/launcher.h"
#include "server/clusters/slurm/fake_slurm_client.h"
#include "server/clusters/slurm_launcher.h"
#include "server/clusters/ssh/fake_host_client.h"
#include "server/clusters/ssh_launcher.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"

// What each Launcher must do.

namespace tandem {
namespace {

using State = LaunchedAttempt::State;
using testing::IsEmpty;
using testing::SizeIs;

// A launcher, and the faults that a test can cause.
class LauncherUnderTest {
 public:
  virtual ~LauncherUnderTest() = default;
  virtual Launcher& launcher() = 0;
  // The next Submit starts the attempt, but its answer is lost. Returns false if the launcher asks nobody.
  virtual bool LoseNextAnswer() { return false; }
  // The next Submit is refused. Returns false if the launcher refuses nothing.
  virtual bool RefuseNext() { return false; }
  // The next Observe gets no answer. Returns false if the launcher knows all attempts itself.
  virtual bool FailNextObservation() { return false; }
};

class Fake final : public LauncherUnderTest {
 public:
  Launcher& launcher() override { return launcher_; }
  bool LoseNextAnswer() override {
    launcher_.LoseNextAnswer();
    return true;
  }
  bool RefuseNext() override {
    launcher_.RefuseNext(absl::InvalidArgumentError("refused"));
    return true;
  }
  bool FailNextObservation() override {
    launcher_.FailNextObservation();
    return true;
  }

 private:
  FakeLauncher launcher_;
};

class Slurm final : public LauncherUnderTest {
 public:
  Launcher& launcher() override { return launcher_; }
  bool LoseNextAnswer() override {
    client_.LoseNextAnswer();
    return true;
  }
  bool RefuseNext() override {
    client_.FailNext(FakeSlurmClient::Call::kSubmit, absl::InvalidArgumentError("refused"));
    return true;
  }
  bool FailNextObservation() override {
    client_.FailNext(FakeSlurmClient::Call::kPoll, absl::UnavailableError("away"));
    return true;
  }

 private:
  FakeSlurmClient client_;
  SlurmLauncher launcher_{&client_};
};

// All hosts have too few cores, so attempts wait.
class Ssh final : public LauncherUnderTest {
 public:
  Ssh() { hosts_.SetSize("h", 1, 0); }
  Launcher& launcher() override { return launcher_; }

 private:
  FakeHostClient hosts_;
  SshLauncher launcher_{{.hosts = {"h"}, .jobs_folder = "/none"}, &hosts_};
};

using Make = std::unique_ptr<LauncherUnderTest> (*)();

class LauncherConformanceTest : public testing::TestWithParam<Make> {
 protected:
  LaunchRequest RequestOf(const AttemptId& id) {
    LaunchRequest request;
    request.job.set_name("jobs/" + id.job_id);
    request.job.set_attempt(id.attempt);
    request.job.set_folder(folder_.path());
    v1::Cluster& cluster = *request.job.mutable_spec()->mutable_cluster();
    if (launcher().name() == "SSH") {
      cluster.mutable_ssh()->set_cpus_per_task(2);
    } else {
      cluster.mutable_slurm()->set_nodes(1);
    }
    request.command = {"/bin/true"};
    std::filesystem::create_directories(JobFolder(folder_.path()).AttemptFolder(id.attempt));
    return request;
  }
  Launcher& launcher() { return tested_->launcher(); }

  const AttemptId id_ = {"job-1", 1};
  TemporaryFolder folder_;
  const std::unique_ptr<LauncherUnderTest> tested_ = GetParam()();
};

TEST_P(LauncherConformanceTest, ObservesASubmittedAttempt) {
  EXPECT_THAT(*launcher().Observe(), IsEmpty());
  const auto submitted = launcher().Submit(RequestOf(id_));
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  EXPECT_EQ(submitted->id, id_);
  EXPECT_FALSE(submitted->handle.empty());
  const auto seen = launcher().Observe();
  ASSERT_TRUE(seen.ok());
  ASSERT_THAT(*seen, SizeIs(1));
  EXPECT_EQ((*seen)[0].id, id_);
  EXPECT_EQ((*seen)[0].handle, submitted->handle);
  EXPECT_EQ((*seen)[0].state, State::kWaiting);
}

TEST_P(LauncherConformanceTest, TellsAttemptsApart) {
  const AttemptId next = {id_.job_id, 2};
  ASSERT_TRUE(launcher().Submit(RequestOf(id_)).ok());
  EXPECT_FALSE(launcher().TakeOver(next)->has_value());
  ASSERT_TRUE(launcher().Submit(RequestOf(next)).ok());
  EXPECT_EQ((*launcher().TakeOver(next))->id, next);
  EXPECT_EQ((*launcher().TakeOver(id_))->id, id_);
}

TEST_P(LauncherConformanceTest, CancelEndsAnAttemptAndMayBeRepeated) {
  const auto submitted = launcher().Submit(RequestOf(id_));
  ASSERT_TRUE(launcher().Cancel(*submitted).ok());
  EXPECT_EQ((*launcher().Observe())[0].state, State::kEnded);
  EXPECT_EQ((*launcher().Observe())[0].reason, v1::STATE_REASON_CLUSTER_CANCELLED);
  EXPECT_TRUE(launcher().Cancel(*submitted).ok());
  LaunchedAttempt unknown;
  unknown.id = {"another", 1};
  unknown.handle = "99";
  EXPECT_TRUE(launcher().Cancel(unknown).ok());
}

TEST_P(LauncherConformanceTest, TakesOverAnAttemptWithALostAnswer) {
  if (!tested_->LoseNextAnswer()) return;
  EXPECT_EQ(launcher().Submit(RequestOf(id_)).status().code(), absl::StatusCode::kUnavailable);
  const auto found = launcher().TakeOver(id_);
  ASSERT_TRUE(found.ok());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->state, State::kWaiting);
}

TEST_P(LauncherConformanceTest, ARefusedAttemptIsNotStarted) {
  if (!tested_->RefuseNext()) return;
  const absl::Status refused = launcher().Submit(RequestOf(id_)).status();
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(launcher().TakeOver(id_)->has_value());
}

TEST_P(LauncherConformanceTest, NoAnswerIsNoEmptyAnswer) {
  ASSERT_TRUE(launcher().Submit(RequestOf(id_)).ok());
  if (!tested_->FailNextObservation()) return;
  EXPECT_EQ(launcher().Observe().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(*launcher().Observe(), SizeIs(1));
}

INSTANTIATE_TEST_SUITE_P(
    Launchers, LauncherConformanceTest,
    testing::Values(Make([]() -> std::unique_ptr<LauncherUnderTest> { return std::make_unique<Fake>(); }),
                    Make([]() -> std::unique_ptr<LauncherUnderTest> { return std::make_unique<Slurm>(); }),
                    Make([]() -> std::unique_ptr<LauncherUnderTest> { return std::make_unique<Ssh>(); })),
    [](const testing::TestParamInfo<Make>& info) {
      return info.index == 0 ? "Fake" : info.index == 1 ? "Slurm" : "Ssh";
    });

}  // namespace
}  // namespace tandem
