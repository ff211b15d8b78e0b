// Tests the tools of the whole-system tests.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/integration/cli.h"
#include "tests/integration/processes.h"
#include "tests/integration/scratch_folder.h"
#include "tests/integration/subprocess.h"

namespace tandem::testing {
namespace {

std::unique_ptr<Subprocess> StartShell(const ScratchFolder& scratch, const std::string& command) {
  auto process = Subprocess::Start({.arguments = {"/bin/sh", "-c", command},
                                    .environment = {{"WHERE", scratch.path()}},
                                    .stdout_path = scratch.File("out"),
                                    .stderr_path = scratch.File("err")});
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

TEST(SubprocessTest, GivesExitCodesAndOutput) {
  ScratchFolder scratch;
  const auto process = StartShell(scratch, "echo to $WHERE; echo wrong >&2; exit 7");
  EXPECT_EQ(process->Wait(absl::Seconds(30)), 7);
  EXPECT_EQ(process->Wait(absl::Seconds(30)), 7);
  EXPECT_EQ(ReadFile(scratch.File("out")), "to " + scratch.path() + "\n");
  EXPECT_EQ(ReadFile(scratch.File("err")), "wrong\n");
}

TEST(SubprocessTest, GivesSignals) {
  ScratchFolder scratch;
  const auto process = StartShell(scratch, "exec sleep 1000");
  EXPECT_FALSE(process->Wait(absl::Milliseconds(50)).has_value());
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(absl::Seconds(30)), 128 + SIGTERM);
}

TEST(SubprocessTest, SaysWhatCannotBeStarted) {
  EXPECT_FALSE(
      Subprocess::Start(
          {.arguments = {"/nonexistent/program"}, .stdout_path = "/dev/null", .stderr_path = "/dev/null"})
          .ok());
}

TEST(ScratchFolderTest, LeavesNothing) {
  std::string path;
  {
    ScratchFolder scratch;
    path = scratch.path();
    scratch.Write("deep/file", "content");
    EXPECT_EQ(ReadFile(scratch.File("deep/file")), "content");
    // A process that leaves its parent's group, as a worker does.
    const auto shell = StartShell(scratch, "setsid sleep 1000 & wait");
    EXPECT_TRUE(WaitUntil([&] { return !FindProcesses("sleep", path).empty(); }));
  }
  EXPECT_TRUE(FindProcesses("", path).empty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ScratchFolderTest, LeavesNothingWhenTheTestIsKilled) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    ScratchFolder scratch;
    const auto shell = StartShell(scratch, "setsid sleep 1000 & wait");
    const std::string path = scratch.path();
    WaitUntil([&] { return !FindProcesses("sleep", path).empty(); });
    (void)!write(channel[1], path.c_str(), path.size() + 1);
    while (true) pause();
  }
  char path[256] = {};
  ASSERT_GT(read(channel[0], path, sizeof path), 0);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(WaitUntil([&] { return !std::filesystem::exists(path); }));
  EXPECT_TRUE(WaitUntil([&] { return FindProcesses("", path).empty(); }));
}

TEST(CliTest, FindsTheSubmittedJob) {
  CliResult result;
  result.out = "submitted lenet-x1.y2\nfollow it with: tandem watch lenet-x1.y2\n";
  EXPECT_EQ(Cli::SubmittedJob(result), "jobs/lenet-x1.y2");
  result.out = "no job\n";
  EXPECT_EQ(Cli::SubmittedJob(result), "");
}

}  // namespace
}  // namespace tandem::testing
