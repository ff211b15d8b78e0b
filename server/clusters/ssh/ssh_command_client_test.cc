#include "server/clusters/ssh/ssh_command_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/clusters/ssh/task_script.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A program in place of ssh runs the scripts here, in a session of their own as on another host.
class SshCommandClientTest : public testing::Test {
 protected:
  SshCommandClientTest() { Fake("shift $(($# - 1)); exec setsid -w /bin/sh -c \"$1\""); }
  ~SshCommandClientTest() override { client_.Stop(host_, job_, 1, HostStop::kKill).IgnoreError(); }

  void Fake(const std::string& code) {
    const std::string path = folder_.path() + "/ssh";
    std::ofstream(path) << "#!/bin/sh\n" << code << "\n";
    chmod(path.c_str(), 0700);
  }
  HostStart StartOf(const std::vector<std::string>& command) {
    TaskScriptOptions options;
    options.attempt_folder = folder_.path() + "/attempt-1";
    std::filesystem::create_directories(options.attempt_folder);
    options.command = command;
    options.workers = 2;
    options.task_output = folder_.path() + "/worker-";
    HostStart start;
    start.script = TaskScript(options);
    start.attempt_folder = options.attempt_folder;
    for (const int rank : {0, 1}) {
      HostTask& task = start.tasks.emplace_back();
      task.job_id = job_;
      task.attempt = 1;
      task.rank = rank;
      task.workers = 2;
      task.cores = 3;
      task.gpus = {1, 4};
    }
    return start;
  }
  // Looks until the job has `count` tasks.
  std::vector<HostTask> TasksWhen(size_t count) {
    std::vector<HostTask> tasks;
    for (int i = 0; i < 1000; ++i) {
      tasks = client_.Look(host_)->tasks;
      if (tasks.size() == count) break;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return tasks;
  }

  // Waits until the worker, whose process is in the file pid-RANK, runs "sleep", or until it has ended.
  // Returns its process, or 0.
  pid_t AwaitHidden(int rank, bool runs) {
    pid_t pid = 0;
    bool is_hidden = !runs;
    for (int i = 0; i < 1000 && is_hidden != runs; ++i) {
      std::ifstream(absl::StrCat(folder_.path(), "/pid-", rank)) >> pid;
      std::string program;
      std::getline(std::ifstream(absl::StrCat("/proc/", pid, "/comm")), program);
      is_hidden = program == "sleep";
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_EQ(is_hidden, runs);
    return is_hidden ? pid : 0;
  }

  const TemporaryFolder folder_;
  SshCommandClient client_{{.path = folder_.path() + ":/usr/bin:/bin", .time_limit = absl::Seconds(30)}};
  // Of this process alone: other tests run beside it.
  const std::string job_ = absl::StrCat("job-", getpid());
  const std::string host_ = absl::StrCat("user@host-", getpid());
};

TEST_F(SshCommandClientTest, TasksOutliveTheCallAndAreSeenAndStopped) {
  const HostStart start = StartOf({"/bin/sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done"});
  ASSERT_TRUE(client_.Start(host_, start).ok());
  EXPECT_THAT(TasksWhen(2), ElementsAre(start.tasks[0], start.tasks[1]));
  EXPECT_THAT(client_.Look("another-host")->tasks, IsEmpty());
  EXPECT_GE(client_.Look(host_)->cores, 1);
  EXPECT_NE(client_.Look(host_)->machine, "");
  EXPECT_EQ(client_.Look(host_)->machine, client_.Look("another-host")->machine);
  // Another attempt and another host stay.
  EXPECT_TRUE(client_.Stop(host_, job_, 2, HostStop::kKill).ok());
  EXPECT_TRUE(client_.Stop("another-host", job_, 1, HostStop::kKill).ok());
  EXPECT_THAT(TasksWhen(2), ElementsAre(start.tasks[0], start.tasks[1]));
  ASSERT_TRUE(client_.Stop(host_, job_, 1, HostStop::kTerminate).ok());
  EXPECT_THAT(TasksWhen(0), IsEmpty());
  std::string end;
  std::getline(std::ifstream(start.attempt_folder + "/ended") >> std::ws, end);
  EXPECT_EQ(end, "5 SIGTERM");
}

TEST_F(SshCommandClientTest, KillsATaskThatIgnoresTheSignal) {
  const HostStart start = StartOf({"/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"});
  ASSERT_TRUE(client_.Start(host_, start).ok());
  EXPECT_THAT(TasksWhen(2), testing::SizeIs(2));
  ASSERT_TRUE(client_.Stop(host_, job_, 1, HostStop::kTerminate).ok());
  EXPECT_THAT(client_.Look(host_)->tasks, testing::SizeIs(2));
  ASSERT_TRUE(client_.Stop(host_, job_, 1, HostStop::kKill).ok());
  EXPECT_THAT(TasksWhen(0), IsEmpty());
}

// A hostile worker can change its own description.
TEST_F(SshCommandClientTest, KillsAWorkerThatHasNoDescription) {
  const HostStart start =
      StartOf({"/bin/sh", "-c",
               absl::StrCat("echo $$ >", folder_.path(), "/pid-$RANK; exec env -u TANDEM_TASK sleep 1000")});
  ASSERT_TRUE(client_.Start(host_, start).ok());
  for (const int rank : {0, 1}) AwaitHidden(rank, true);
  ASSERT_TRUE(client_.Stop(host_, job_, 1, HostStop::kKill).ok());
  for (const int rank : {0, 1}) {
    if (AwaitHidden(rank, false) != 0) kill(AwaitHidden(rank, true), SIGKILL);
  }
}

TEST_F(SshCommandClientTest, WithoutGrepNothingIsKnown) {
  std::ofstream(folder_.path() + "/grep") << "#!/bin/sh\nkill -9 $$\n";
  chmod((folder_.path() + "/grep").c_str(), 0700);
  const absl::Status status = client_.Look(host_).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot list the processes"));
}

TEST_F(SshCommandClientTest, CountsAllCoresWhateverALoginScriptSetsForOpenMp) {
  const int cores = client_.Look(host_)->cores;
  Fake("shift $(($# - 1)); OMP_THREAD_LIMIT=1 OMP_NUM_THREADS=7 exec setsid -w /bin/sh -c \"$1\"");
  EXPECT_EQ(client_.Look(host_)->cores, cores);
}

TEST_F(SshCommandClientTest, AFolderThatTheHostLacksIsNoStart) {
  HostStart start = StartOf({"/bin/true"});
  start.attempt_folder = folder_.path() + "/it's none";
  const absl::Status status = client_.Start(host_, start);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/it's none is missing; every node needs this path"));
}

TEST_F(SshCommandClientTest, AHostThatDoesNotAnswerIsUnavailable) {
  Fake("echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255");
  const absl::Status refused = client_.Look("x").status();
  EXPECT_TRUE(absl::IsUnavailable(refused));
  EXPECT_EQ(
      std::string(refused.message()),
      "cannot reach host x: ssh: connect to host x port 22: Connection refused; try `ssh x true` as the "
      "daemon's user");
  EXPECT_TRUE(absl::IsUnavailable(client_.Start("x", StartOf({"/bin/true"}))));
  SshCommandClient slow({.path = folder_.path() + ":/bin", .time_limit = absl::Milliseconds(200)});
  Fake("sleep 60");
  const absl::Status late = slow.Look("x").status();
  EXPECT_TRUE(absl::IsUnavailable(late));
  EXPECT_THAT(
      std::string(late.message()),
      HasSubstr("no answer within 200ms; try `time ssh x true` as the daemon's user: a script of its"));
  std::filesystem::remove(folder_.path() + "/ssh");
  SshCommandClient none({.path = folder_.path()});
  EXPECT_THAT(std::string(none.Look("x").status().message()), HasSubstr("install openssh-client"));
}

TEST_F(SshCommandClientTest, ChecksPaths) {
  EXPECT_TRUE(client_.CheckPaths("x", {"/usr", "/bin/sh"}).ok());
  const absl::Status status = client_.CheckPaths("x", {"/usr", "/no such", "/it's"});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("host x lacks /no such, /it's; every host needs"));
}

TEST(ParseLookTest, ReadsSizesAndTasks) {
  const auto host = ParseLook("gpu1",
                              "Welcome!\ncores 8\ngpus 2\n"
                              "task a 3 0/2 gpu1 4 0,1\n"
                              "task a 3 1/2 gpu2 4 0,1\n"
                              "task a 3 1/2 gpu1 4 -\n"
                              "task a 3 1/2147483647 gpu1 4 -\n"
                              "task a x 1/2 gpu1 4 -\ntask a 3 2/2 gpu1 4 -\ntask a 3 1/2 gpu1 4 0,-1\ntask\n"
                              "end\n");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->cores, 8);
  EXPECT_EQ(host->gpus, 2);
  ASSERT_THAT(host->tasks, testing::SizeIs(2));
  EXPECT_EQ(DescribeTask(host->tasks[0], "gpu1"), "a 3 0/2 gpu1 4 0,1");
  EXPECT_EQ(DescribeTask(host->tasks[1], "gpu1"), "a 3 1/2 gpu1 4 -");
}

TEST(ParseLookTest, RefusesAHalfAnswer) {
  for (const char* const output : {"", "cores 8\ngpus 2\n", "cores \ngpus 0\nend\n", "no shell\nend\n"}) {
    EXPECT_TRUE(absl::IsInternal(ParseLook("gpu1", output).status())) << output;
  }
}

}  // namespace
}  // namespace tandem
