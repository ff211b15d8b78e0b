#include "server/clusters/slurm/batch_script.h"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/base/command.h"
#include "engine/base/env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Runs the script with programs of the test in place of srun and scancel.
class BatchScriptTest : public ::testing::Test {
 protected:
  BatchScriptTest() {
    // A path that needs quotes.
    attempt_ = folder_.path() + "/a 'b' $c \"d\"/attempt-3";
    std::filesystem::create_directories(attempt_);
    // This srun runs a single task here. Like Slurm's, it leaves out its own options.
    Fake("srun",
         "echo $PPID >script\nprintf '%s\\n' \"$@\" >>srun.arguments\n"
         "while case \"$1\" in --*) true ;; *) false ;; esac; do shift; done\n\"$@\" &\n"
         "echo $! >task.new && mv task.new task\nwait $!");
    Fake("scancel", "printf '%s\\n' \"$*\" >>scancel.arguments; kill -TERM $(cat task)");
    options_.attempt_folder = attempt_;
    options_.command = {"echo", "hello  world", "$HOME", "it's"};
  }

  void Fake(const std::string& program, const std::string& code) {
    const std::string path = absl::StrCat(folder_.path(), "/", program);
    std::ofstream(path) << "#!/bin/sh\ncd " << folder_.path() << "\n" << code << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  CommandResult Run() {
    const std::string path = absl::StrCat(folder_.path(), "/batch.sh");
    std::ofstream(path) << BatchScript(options_);
    Command command;
    command.program = "/bin/bash";
    command.arguments = {path};
    command.environment = {absl::StrCat("PATH=", folder_.path(), ":/usr/bin:/bin"), "SLURM_JOB_ID=12",
                           "SLURMD_NODENAME=n1"};
    const absl::StatusOr<CommandResult> result = RunCommand(command);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult());
  }

  // Returns the process of the script, which the srun of the test notes.
  pid_t ScriptPid() const {
    std::ifstream file(folder_.path() + "/script");
    pid_t pid = 0;
    file >> pid;
    return pid;
  }

  // Blocks until the file is there, at most half a minute.
  static void AwaitFile(const std::string& path) {
    for (int i = 0; i < 3000 && !std::filesystem::exists(path); ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
  }

  const TemporaryFolder folder_;
  std::string attempt_;
  BatchScriptOptions options_;
};

TEST_F(BatchScriptTest, RunsTheCommandAndNotesBothEnds) {
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "hello  world $HOME it's\n");
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/started"), "12 n1\n");
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/ended"), "0\n");
}

TEST_F(BatchScriptTest, ReturnsTheTasksCode) {
  options_.command = {"sh", "-c", "exit 7"};
  EXPECT_EQ(Run().exit_code, 7);
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/ended"), "7\n");
}

TEST_F(BatchScriptTest, ASecondRunDoesNothing) {
  EXPECT_EQ(Run().exit_code, 0);
  std::filesystem::remove(attempt_ + "/ended");
  const CommandResult second = Run();
  EXPECT_EQ(second.exit_code, kBatchSecondRun);
  EXPECT_EQ(second.standard_output, "");
  EXPECT_THAT(second.standard_error, HasSubstr("job 12 does nothing on node n1"));
  EXPECT_THAT(second.standard_error, HasSubstr("by job and node 12 n1"));
  EXPECT_FALSE(std::filesystem::exists(attempt_ + "/ended"));
}

TEST_F(BatchScriptTest, OfManyRunsAtOnceOneRuns) {
  std::vector<CommandResult> results(8);
  const std::string path = absl::StrCat(folder_.path(), "/batch.sh");
  std::ofstream(path) << BatchScript(options_);
  std::vector<std::thread> threads;
  for (CommandResult& result : results) {
    threads.emplace_back([&result, &path, this] {
      Command command;
      command.program = "/bin/bash";
      command.arguments = {path};
      command.environment = {absl::StrCat("PATH=", folder_.path(), ":/usr/bin:/bin"), "SLURM_JOB_ID=12"};
      result = RunCommand(command).value_or(CommandResult());
    });
  }
  for (std::thread& thread : threads) thread.join();
  int ran = 0;
  for (const CommandResult& result : results) {
    if (result.exit_code == 0) {
      ++ran;
    } else {
      EXPECT_EQ(result.exit_code, kBatchSecondRun) << result.standard_error;
    }
  }
  EXPECT_EQ(ran, 1);
}

TEST_F(BatchScriptTest, AMissingFolderNamesNodeAndPath) {
  std::filesystem::remove(attempt_);
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, kBatchPathMissing);
  EXPECT_THAT(result.standard_error, HasSubstr("cannot start on node n1"));
  EXPECT_THAT(result.standard_error, HasSubstr(attempt_ + " is missing"));
}

TEST_F(BatchScriptTest, AMissingPathNamesNodeAndPath) {
  options_.required_paths = {"/", "/no/such 'path'"};
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, kBatchPathMissing);
  EXPECT_EQ(result.standard_output, "");
  EXPECT_THAT(result.standard_error, HasSubstr("cannot start on node n1: /no/such 'path' is missing"));
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/ended"), "76\n");
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/missing"),
            "cannot start on node n1: /no/such 'path' is missing; every node needs this path\n");
}

TEST_F(BatchScriptTest, PresentPathsStartTheTask) {
  options_.required_paths = {"/", attempt_};
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "hello  world $HOME it's\n");
}

TEST_F(BatchScriptTest, PassesVariablesAndPlaces) {
  options_.environment = {{"A", "x 'y' $z"}, {"B", "@SRUN@"}};
  options_.command = {"sh", "-c", "echo \"$A,$B\""};
  options_.nodes = 4;
  options_.tasks_per_node = 2;
  options_.cpus_per_task = 8;
  EXPECT_EQ(Run().standard_output, "x 'y' $z,@SRUN@\n");
  const std::vector<std::string> arguments =
      absl::StrSplit(ContentOrEmpty(folder_.path() + "/srun.arguments"), '\n', absl::SkipEmpty());
  ASSERT_GE(arguments.size(), 8);
  EXPECT_THAT(std::vector<std::string>(arguments.begin(), arguments.begin() + 8),
              ElementsAre("--nodes=4", "--ntasks-per-node=2", "--cpus-per-task=8", "--kill-on-bad-exit=1",
                          "--wait=0", "--mpi=none", "--input=none", "--export=ALL"));
}

TEST_F(BatchScriptTest, AppendsTheOutputToTheLogOfTheRank) {
  options_.task_output = attempt_ + "/worker-";
  std::ofstream(attempt_ + "/worker-3.log") << "before\n";
  options_.command = {"sh", "-c", "echo out; echo err >&2"};
  Fake("srun",
       "export SLURM_PROCID=3\nwhile case \"$1\" in --*) true ;; *) false ;; esac; do shift; done\nexec "
       "\"$@\"");
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, 0) << result.standard_error;
  EXPECT_EQ(result.standard_output, "");
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/worker-3.log"), "before\nout\nerr\n");
}

// As on a node that has the shared folder read-only.
TEST_F(BatchScriptTest, ALogThatCannotBeWrittenNamesNodeAndPath) {
  options_.task_output = attempt_ + "/no-such-folder/worker-";
  Fake("srun",
       "export SLURM_PROCID=3\nwhile case \"$1\" in --*) true ;; *) false ;; esac; do shift; done\nexec "
       "\"$@\"");
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, kBatchPathMissing);
  EXPECT_EQ(result.standard_error,
            absl::StrCat("cannot start on node n1: ", attempt_,
                         "/no-such-folder/worker-3.log cannot be written; every node must be able to write "
                         "there\n"));
}

// As on a node that does not have the shared folder.
TEST_F(BatchScriptTest, ATaskWithoutTheAttemptsFolderEndsTheStep) {
  options_.task_output = attempt_ + "/worker-";
  Fake("srun",
       absl::StrCat("mv '", folder_.path(), "/a '\\''b'\\'' $c \"d\"' gone\n",
                    "while case \"$1\" in --*) true ;; *) false ;; esac; do shift; done\nexec \"$@\""));
  const CommandResult result = Run();
  EXPECT_EQ(result.exit_code, kBatchPathMissing);
  EXPECT_THAT(result.standard_error, HasSubstr("cannot start on node n1: " + attempt_ + " is missing"));
}

TEST_F(BatchScriptTest, SendsTheFirstTermOnAndWaits) {
  const std::string ready = folder_.path() + "/ready";
  options_.command = {"bash", "-c",
                      absl::StrCat("trap 'sleep 0.3; echo saved; exit 5' TERM; touch ", ready,
                                   "; while true; do sleep 0.05; done")};
  std::thread terminator([&] {
    AwaitFile(ready);
    AwaitFile(folder_.path() + "/task");
    const pid_t script = ScriptPid();
    ASSERT_GT(script, 1);
    kill(script, SIGTERM);
    absl::SleepFor(absl::Milliseconds(100));
    kill(script, SIGTERM);
  });
  const CommandResult result = Run();
  terminator.join();
  EXPECT_EQ(result.exit_code, 5) << result.standard_error;
  EXPECT_EQ(result.standard_output, "saved\n");
  EXPECT_EQ(ContentOrEmpty(folder_.path() + "/scancel.arguments"), "--signal=TERM 12.0\n");
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/ended"), "5 SIGTERM\n");
}

TEST_F(BatchScriptTest, SendsTheWarningOfTheTimeLimitOnAndThenTheTerm) {
  const std::string ready = folder_.path() + "/ready";
  Fake("scancel", "printf '%s\\n' \"$*\" >>scancel.arguments; kill -${1#--signal=} $(cat task)");
  options_.command = {"bash", "-c",
                      absl::StrCat("trap 'touch ", ready, ".2' USR1; trap 'echo saved; exit 5' TERM; touch ",
                                   ready, "; while true; do sleep 0.05; done")};
  std::thread terminator([&] {
    AwaitFile(ready);
    AwaitFile(folder_.path() + "/task");
    const pid_t script = ScriptPid();
    ASSERT_GT(script, 1);
    kill(script, SIGUSR1);
    AwaitFile(ready + ".2");
    kill(script, SIGTERM);
  });
  const CommandResult result = Run();
  terminator.join();
  EXPECT_EQ(result.exit_code, 5) << result.standard_error;
  EXPECT_EQ(result.standard_output, "saved\n");
  EXPECT_EQ(ContentOrEmpty(folder_.path() + "/scancel.arguments"),
            "--signal=USR1 12.0\n--signal=TERM 12.0\n");
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/ended"), "5 SIGTERM\n");
}

TEST_F(BatchScriptTest, AWarningOfTheTimeLimitIsNoTermination) {
  const std::string ready = folder_.path() + "/ready";
  Fake("scancel", "kill -${1#--signal=} $(cat task)");
  options_.command = {"bash", "-c",
                      absl::StrCat("trap 'exit 0' USR1; touch ", ready, "; while true; do sleep 0.05; done")};
  std::thread terminator([&] {
    AwaitFile(ready);
    AwaitFile(folder_.path() + "/task");
    const pid_t script = ScriptPid();
    ASSERT_GT(script, 1);
    kill(script, SIGUSR1);
  });
  EXPECT_EQ(Run().exit_code, 0);
  terminator.join();
  EXPECT_EQ(ContentOrEmpty(attempt_ + "/ended"), "0\n");
}

TEST_F(BatchScriptTest, SendsTheTermAgainUntilTheStepTakesIt) {
  const std::string ready = folder_.path() + "/ready";
  Fake("scancel", "echo try >>tries; [ $(wc -l <tries) -ge 3 ] || exit 1; kill -TERM $(cat task)");
  options_.command = {"bash", "-c",
                      absl::StrCat("trap 'exit 5' TERM; touch ", ready, "; while true; do sleep 0.05; done")};
  std::thread terminator([&] {
    AwaitFile(ready);
    AwaitFile(folder_.path() + "/task");
    const pid_t script = ScriptPid();
    ASSERT_GT(script, 1);
    kill(script, SIGTERM);
  });
  EXPECT_EQ(Run().exit_code, 5);
  terminator.join();
  EXPECT_EQ(ContentOrEmpty(folder_.path() + "/tries"), "try\ntry\ntry\n");
}

}  // namespace
}  // namespace tandem
