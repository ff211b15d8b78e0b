// Real workers run in their sandbox and do all of their work. server/workers/sandbox_test tests the limits of
// the sandbox.
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/api.h"
#include "tests/integration/cli.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/job_specs.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// `on` would not start where the kernel lacks something.
TEST(WorkerSandboxTest, JobsOfOneAndOfTwoWorkersTrainConfined) {
  ScratchFolder scratch;
  DaemonProcess daemon({.state_folder = scratch.File("state"), .cpu_devices = 2});
  ASSERT_TRUE(daemon.Start().ok());
  Api api(daemon);
  Cli cli(scratch);
  cli.Use(daemon);
  for (const int workers : {1, 2}) {
    v1::JobSpec spec = LongJob(1'000'000);
    spec.mutable_replicas()->set_count(workers);
    if (workers > 1) spec.mutable_replicas()->set_workers(workers);
    const std::string job = api.CreateAndAwait(spec, v1::JOB_STATE_RUNNING);
    const std::vector<pid_t> processes = daemon.Workers();
    EXPECT_EQ(processes.size(), workers);
    for (const pid_t pid : processes) {
      const std::string status = ReadFile(absl::StrCat("/proc/", pid, "/status"));
      EXPECT_THAT(status, HasSubstr("\nNoNewPrivs:\t1\n"));
      EXPECT_THAT(status, HasSubstr("\nSeccomp:\t2\n"));
      EXPECT_THAT(ReadFile(absl::StrCat("/proc/", pid, "/limits")),
                  HasSubstr("Max core file size        0 "));
    }
    EXPECT_THAT(ReadFile(daemon.JobFolder(job) + "/worker.log"), HasSubstr("confined: "));
    // A checkpoint is written and gone on from.
    api.Pause(job);
    api.WaitFor(job, v1::JOB_STATE_PAUSED);
    EXPECT_FALSE(api.Checkpoints(job).empty());
    api.Resume(job);
    api.WaitFor(job, v1::JOB_STATE_RUNNING);
    api.Cancel(job);
    EXPECT_EQ(api.WaitFor(job, v1::JOB_STATE_CANCELLED).state(), v1::JOB_STATE_CANCELLED) << daemon.Log();
  }
  // A model's worker, with neither network nor a folder to write to.
  const std::string trained = api.Create(SmallJob({})).name();
  ASSERT_EQ(api.WaitFor(trained, v1::JOB_STATE_SUCCEEDED).state(), v1::JOB_STATE_SUCCEEDED) << daemon.Log();
  const CliResult evaluated = cli.Run({"evaluate", trained});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated << daemon.Log();
}

TEST(WorkerSandboxTest, Off) {
  ScratchFolder scratch;
  DaemonProcess daemon({.state_folder = scratch.File("state"),
                        .cpu_devices = 1,
                        .extra_arguments = {"--worker-sandbox", "off"}});
  ASSERT_TRUE(daemon.Start().ok());
  Api api(daemon);
  const std::string job = api.CreateAndAwait(SmallJob({}), v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(ReadFile(daemon.JobFolder(job) + "/worker.log"), Not(HasSubstr("confined")));
}

}  // namespace
}  // namespace tandem::testing
