#include "engine/base/process_group.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

class ProcessGroupTest : public testing::Test {
 protected:
  ProcessGroupTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    read_end_ = UniqueFd(ends[0]);
    write_end_ = UniqueFd(ends[1]);
  }

  // Starts a shell whose stdout and stderr are the pipe.
  std::unique_ptr<ProcessGroup> Shell(const std::string& code) {
    auto process =
        ProcessGroup::Start({.program = "/bin/sh", .arguments = {"-c", code}, .environment = {"A=1"}},
                            {nothing_.get(), write_end_.get(), write_end_.get()});
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return nullptr;
    return *std::move(process);
  }

  // Returns the next line of the pipe.
  std::string Line() {
    std::string line;
    for (char next = 0; read(read_end_.get(), &next, 1) == 1 && next != '\n';) line += next;
    return line;
  }

  // Waits for the end of the process, at most a minute. Returns whether the process has ended.
  static bool AwaitEnd(const ProcessGroup& process) {
    pollfd ended = {.fd = process.pidfd(), .events = POLLIN, .revents = 0};
    return poll(&ended, 1, 60000) == 1;
  }

  const UniqueFd nothing_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd read_end_, write_end_;
};

TEST_F(ProcessGroupTest, AProcessLeadsItsSessionAndSaysHowItEnded) {
  const auto process = Shell("cut -d' ' -f1,5,6 /proc/$$/stat; echo $A; exit 3");
  ASSERT_NE(process, nullptr);
  const pid_t pid = process->pid();
  EXPECT_EQ(Line(), absl::StrCat(pid, " ", pid, " ", pid));
  EXPECT_EQ(Line(), "1");
  ASSERT_TRUE(AwaitEnd(*process));
  const ProcessGroup::End end = process->Reap();
  EXPECT_TRUE(end.known);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
}

// Files may have any numbers here, such as those of other files in the new process.
TEST_F(ProcessGroupTest, AProcessHasTheFilesGivenAndNoOthers) {
  const auto process = ProcessGroup::Start({.program = "/bin/sh",
                                            .arguments = {"-c",
                                                          "echo 0 >&3; for file in 0 1 2 3 4 5 6 7 8 9; "
                                                          "do [ -e /proc/$$/fd/$file ] && echo $file; done"},
                                            .environment = {}},
                                           {2, write_end_.get(), 1, write_end_.get()});
  ASSERT_TRUE(process.ok()) << process.status();
  write_end_.Reset();
  for (const char* line : {"0", "0", "1", "2", "3", ""}) EXPECT_EQ(Line(), line);
  ASSERT_TRUE(AwaitEnd(**process));
  EXPECT_TRUE((*process)->Reap().known);
}

TEST_F(ProcessGroupTest, IgnoredSignalsHaveTheirDefaultAgain) {
  const auto before = signal(SIGTERM, SIG_IGN);
  const auto process = Shell("kill -TERM $$; echo lives");
  signal(SIGTERM, before);
  ASSERT_NE(process, nullptr);
  ASSERT_TRUE(AwaitEnd(*process));
  EXPECT_EQ(process->Reap().signal, SIGTERM);
}

TEST_F(ProcessGroupTest, KillEndsTheProcessAndItsChildren) {
  const auto process = Shell("sleep 600 & echo started; wait");
  ASSERT_NE(process, nullptr);
  EXPECT_EQ(Line(), "started");
  EXPECT_FALSE(process->HasEnded());
  const ProcessGroup::End end = process->Kill(absl::InfiniteDuration());
  EXPECT_TRUE(end.known);
  EXPECT_EQ(end.signal, SIGKILL);
  // The pipe ends when no process has it open.
  write_end_.Reset();
  EXPECT_EQ(Line(), "");
}

TEST_F(ProcessGroupTest, AMissingProgramOrProcessIsNotFound) {
  const auto missing =
      ProcessGroup::Start({.program = "/no/such/program", .arguments = {}, .environment = {}}, {});
  EXPECT_TRUE(absl::IsNotFound(missing.status())) << missing.status();
  const auto folder = ProcessGroup::Start({.program = "/", .arguments = {}, .environment = {}}, {});
  EXPECT_FALSE(folder.ok() || absl::IsNotFound(folder.status())) << folder.status();

  const auto process = Shell("exit 0");
  ASSERT_NE(process, nullptr);
  EXPECT_TRUE(ProcessGroup::Open(process->pid()).ok());
  process->Kill(absl::InfiniteDuration());
  EXPECT_TRUE(absl::IsNotFound(ProcessGroup::Open(process->pid()).status()));
}

}  // namespace
}  // namespace tandem
