// Daemons on a copy of another daemon's state folder, and on a moved state folder. The original must not
// change, and its workers must continue. The daemon must find all jobs at their new place.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"

namespace tandem::testing {
namespace {

using ::testing::Not;
using ::testing::StartsWith;

class CopiedStateTest : public DaemonFixture {
 protected:
  CopiedStateTest() : DaemonFixture(/*cpu_devices=*/1) {}

  static v1::JobSpec Job(int epochs) {
    v1::JobSpec spec = SmallJob({.epochs = epochs, .train_samples = 4096, .seed = 1});
    spec.set_max_restarts(3);
    return spec;
  }
  std::string Ended() {
    const v1::Job job = Api(daemon_).Create(Job(1));
    EXPECT_EQ(Api(daemon_).WaitFor(job.name(), v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED);
    return job.name();
  }
  static bool HasModel(const DaemonProcess& daemon, const std::string& job) {
    return std::filesystem::exists(daemon.JobFolder(job) + "/model.safetensors");
  }
};

TEST_F(CopiedStateTest, ADaemonOnACopyLeavesTheOriginalAlone) {
  const std::string ended = Ended();
  const std::string running = Api(daemon_).Create(Job(100000)).name();
  ASSERT_TRUE(WaitUntil([&] { return !Api(daemon_).Checkpoints(running).empty(); }));
  const std::vector<pid_t> workers = daemon_.Workers();
  ASSERT_EQ(workers.size(), 1U);

  const std::string folder = daemon_.state_folder() + "-copy";
  // They stand still meanwhile, or files would come and go.
  const auto signal_all = [&](int signal) {
    for (const pid_t process : daemon_.Processes()) kill(process, signal);
  };
  signal_all(SIGSTOP);
  const int copied = std::system(absl::StrCat("cp -a '", daemon_.state_folder(), "' '", folder, "'").c_str());
  signal_all(SIGCONT);
  ASSERT_EQ(copied, 0);
  DaemonProcess copy({.state_folder = folder, .cpu_devices = 1});
  ASSERT_TRUE(copy.Start().ok());
  Api api(copy);
  EXPECT_EQ(api.Get(ended).folder(), copy.JobFolder(ended));
  EXPECT_TRUE(HasModel(copy, ended));
  // The job continues in the copy with its own worker, from the copy's checkpoint.
  ASSERT_TRUE(WaitUntil([&] {
    const v1::Job job = api.Get(running);
    return job.state() == v1::JOB_STATE_RUNNING && job.attempt() > 1;
  })) << copy.Log();
  for (const pid_t worker : copy.Workers()) EXPECT_EQ(std::count(workers.begin(), workers.end(), worker), 0);
  api.Delete(ended);
  api.Cancel(running);
  EXPECT_EQ(api.WaitFor(running, v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED);
  api.Delete(running);
  EXPECT_TRUE(WaitUntil([&] { return std::filesystem::is_empty(folder + "/jobs"); })) << copy.Log();
  EXPECT_EQ(copy.Terminate(), 0);

  EXPECT_EQ(daemon_.Workers(), workers);
  EXPECT_EQ(Api(daemon_).Get(running).attempt(), 1);
  EXPECT_EQ(Api(daemon_).Get(running).state(), v1::JOB_STATE_RUNNING);
  // While one is listed the next ones may take its place: they come within milliseconds.
  EXPECT_TRUE(WaitUntil([&] { return !Api(daemon_).Checkpoints(running).empty(); }));
  EXPECT_TRUE(HasModel(daemon_, ended));
}

TEST_F(CopiedStateTest, AFolderThatWasMovedHasItsJobs) {
  const std::string ended = Ended();
  const std::string interrupted = Api(daemon_).Create(Job(100000)).name();
  ASSERT_TRUE(WaitUntil([&] { return !Api(daemon_).Checkpoints(interrupted).empty(); }));
  Api(daemon_).Pause(interrupted);
  ASSERT_EQ(Api(daemon_).WaitFor(interrupted, v1::JOB_STATE_PAUSED).state(), v1::JOB_STATE_PAUSED);
  ASSERT_TRUE(WaitUntil([&] { return daemon_.Workers().empty(); }));
  ASSERT_EQ(daemon_.Terminate(), 0);

  const std::string folder = daemon_.state_folder() + "-moved";
  std::filesystem::rename(daemon_.state_folder(), folder);
  DaemonProcess moved({.state_folder = folder, .cpu_devices = 1});
  ASSERT_TRUE(moved.Start().ok());
  Api api(moved);
  EXPECT_THAT(api.Get(ended).folder(), StartsWith(folder));
  EXPECT_FALSE(api.Checkpoints(ended).empty());
  // While it trains, the newest may be replaced just then.
  const auto newest = [&] {
    const std::vector<int64_t> steps = api.Checkpoints(interrupted);
    return steps.empty() ? -1 : steps.front();
  };
  const int64_t checkpoint = newest();
  EXPECT_GT(checkpoint, 0);
  api.Resume(interrupted);
  // Not from the beginning.
  EXPECT_TRUE(WaitUntil([&] { return newest() > checkpoint; })) << moved.Log();
  EXPECT_THAT(moved.Log(), Not(::testing::HasSubstr("removed on the daemon's machine")));
  const v1::JobSpec longer = Job(2);
  const std::string fork = api.Fork(ended, /*step=*/-1, &longer).name();
  EXPECT_TRUE(std::filesystem::exists(moved.JobFolder(fork)));
  api.Cancel(fork);
  api.Cancel(interrupted);
  api.WaitFor(interrupted, v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(moved.Terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists(daemon_.state_folder()));
}

}  // namespace
}  // namespace tandem::testing
