#include "server/clusters/ssh/task_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/command.h"
#include "engine/base/env.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class TaskScriptTest : public testing::Test {
 protected:
  TaskScriptTest() {
    options_.attempt_folder = folder_.path() + "/it's attempt-1";
    std::filesystem::create_directories(options_.attempt_folder);
    options_.task_output = folder_.path() + "/worker-";
  }

  // Runs a task on host "h1". Returns its exit code.
  int Run(int rank, const std::string& gpus = "-") {
    Command command;
    command.program = "/bin/sh";
    command.arguments = {"-c", TaskScript(options_), "tandem-task", absl::StrCat(rank), "0", "h1", gpus};
    command.environment = {"PATH=/usr/bin:/bin"};
    const auto result = RunCommand(command);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return -1;
    output_ = result->standard_output + result->standard_error;
    return result->exit_code;
  }
  std::string Content(const std::string& name) const {
    return Env::Real()->ReadFile(absl::StrCat(options_.attempt_folder, "/", name)).value_or("none");
  }
  std::string Log(int rank) const {
    return Env::Real()->ReadFile(absl::StrCat(options_.task_output, rank, ".log")).value_or("none");
  }

  const TemporaryFolder folder_;
  TaskScriptOptions options_;
  std::string output_;
};

TEST_F(TaskScriptTest, RunsTheWorkerWithItsPlace) {
  options_.command = {"/bin/sh", "-c",
                      "echo \"$RANK of $WORLD_SIZE, $LOCAL_RANK, $A, ${CUDA_VISIBLE_DEVICES-none}\""};
  options_.environment = {{"A", "it's $HOME"}};
  options_.workers = 2;
  EXPECT_EQ(Run(1), 0);
  EXPECT_EQ(Log(1), "1 of 2, 0, it's $HOME, none\n");
  EXPECT_EQ(Content("started"), "h1\n");
  EXPECT_EQ(Content("started-1"), "h1\n");
  EXPECT_EQ(Content("ended-1"), "0\n");
  // The other task has not ended.
  EXPECT_EQ(Content("ended"), "none");
  EXPECT_EQ(Run(0, "2,3"), 0);
  EXPECT_EQ(Log(0), "0 of 2, 0, it's $HOME, 2,3\n");
  EXPECT_EQ(Content("ended"), "0\n");
  EXPECT_EQ(output_, "");
}

TEST_F(TaskScriptTest, TheLastTaskTellsTheFirstFailure) {
  options_.command = {"/bin/sh", "-c", "exit $((RANK * 3))"};
  options_.workers = 3;
  EXPECT_EQ(Run(2), 6);
  EXPECT_EQ(Run(0), 0);
  EXPECT_EQ(Run(1), 3);
  EXPECT_EQ(Content("ended-2"), "6\n");
  // In the order of ranks.
  EXPECT_EQ(Content("ended"), "3\n");
}

TEST_F(TaskScriptTest, ATaskRunsOnce) {
  options_.command = {"/bin/echo", "begun"};
  EXPECT_EQ(Run(0), 0);
  EXPECT_EQ(Run(0), 77);
  EXPECT_EQ(Log(0), "begun\n");
  EXPECT_THAT(output_, HasSubstr("task 0 does nothing on node h1: it was started before"));
}

TEST_F(TaskScriptTest, NamesAMissingPath) {
  options_.command = {"/bin/echo", "begun"};
  options_.required_paths = {"/usr", "/no such/path"};
  EXPECT_EQ(Run(0), 76);
  EXPECT_EQ(Content("missing"),
            "cannot start on node h1: /no such/path is missing; every node needs this path\n");
  EXPECT_EQ(Content("ended"), "76\n");
  EXPECT_EQ(Log(0), "none");
}

TEST_F(TaskScriptTest, NamesALogThatCannotBeWritten) {
  options_.command = {"/bin/echo", "begun"};
  options_.task_output = folder_.path() + "/none/worker-";
  EXPECT_EQ(Run(0), 76);
  EXPECT_THAT(Content("missing"), HasSubstr("/none/worker-0.log cannot be written; every node must"));
}

TEST_F(TaskScriptTest, SendsTheSignalToTheWorkerAndWaitsForItsEnd) {
  options_.command = {"/bin/sh", "-c",
                      "trap 'echo stopping; sleep 0.3; echo stopped; exit 5' TERM; echo ready; "
                      "while :; do sleep 0.05; done"};
  std::thread stop([this] {
    while (Log(0).find("ready") == std::string::npos) absl::SleepFor(absl::Milliseconds(10));
    // The script's process has this folder in its command line.
    Command command;
    command.program = "/bin/sh";
    command.arguments = {
        "-c", absl::StrCat("pkill -TERM -f ", ShellQuote("^/bin/sh -c attempt='" + folder_.path()))};
    command.environment = {"PATH=/usr/bin:/bin"};
    EXPECT_EQ(RunCommand(command)->exit_code, 0);
  });
  EXPECT_EQ(Run(0), 5);
  stop.join();
  EXPECT_EQ(Log(0), "ready\nstopping\nstopped\n");
  EXPECT_EQ(Content("ended"), "5 SIGTERM\n");
}

TEST_F(TaskScriptTest, AKilledWorkerHasACode) {
  options_.command = {"/bin/sh", "-c", "kill -KILL $$"};
  EXPECT_EQ(Run(0), 128 + SIGKILL);
  EXPECT_EQ(Content("ended"), "137\n");
}

// A hostile worker of another rank may put links into the folder.
TEST_F(TaskScriptTest, WritesThroughNoLink) {
  const std::string victim = folder_.path() + "/victim";
  std::ofstream(victim) << "precious";
  for (const char* const name : {"new-0", "ended-0", "ended", "missing"}) {
    std::filesystem::create_symlink(victim, absl::StrCat(options_.attempt_folder, "/", name));
  }
  options_.command = {"/bin/true"};
  EXPECT_EQ(Run(0), 0);
  EXPECT_EQ(Content("ended-0"), "0\n");
  EXPECT_EQ(Content("ended"), "0\n");
  EXPECT_EQ(Env::Real()->ReadFile(victim).value(), "precious");
  options_.workers = 2;
  std::filesystem::create_symlink(victim, options_.task_output + "1.log");
  EXPECT_EQ(Run(1), 76);
  EXPECT_THAT(Content("missing"), HasSubstr("/worker-1.log cannot be written"));
  EXPECT_EQ(Env::Real()->ReadFile(victim).value(), "precious");
}

}  // namespace
}  // namespace tandem
