#include "engine/base/command.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Command Shell(const std::string& code) {
  Command command;
  command.program = "sh";
  command.arguments = {"-c", code};
  command.path = "/usr/bin:/bin";
  return command;
}

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(CommandTest, ReturnsCodeAndOutputs) {
  const auto result = RunCommand(Shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 3);
  EXPECT_EQ(result->standard_output, "out\n");
  EXPECT_EQ(result->standard_error, "err\n");
}

TEST(CommandTest, PassesArgumentsWithoutAShell) {
  Command command;
  command.program = "/usr/bin/printf";
  command.arguments = {"%s,", "a b", "$HOME", "'\"|;", ""};
  const auto result = RunCommand(command);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->standard_output, "a b,$HOME,'\"|;,,");
}

TEST(CommandTest, PassesOnlyTheEnvironmentGiven) {
  Command command;
  command.program = "/usr/bin/env";
  command.environment = {"A=1", "B=x y"};
  const auto result = RunCommand(command);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->standard_output, "A=1\nB=x y\n");
}

TEST(CommandTest, PassesNoOpenFile) {
  const int file = open("/dev/null", O_RDONLY);
  ASSERT_GT(file, 2);
  const auto result = RunCommand(Shell(absl::StrCat("[ -e /proc/self/fd/", file, " ] || echo none; cat")));
  close(file);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->standard_output, "none\n");
}

TEST(CommandTest, AMissingProgramIsNotFound) {
  Command command;
  command.program = "no-such-program";
  command.path = "/usr/bin:/bin";
  EXPECT_TRUE(absl::IsNotFound(RunCommand(command).status()));
  command.program = "/no/such/program";
  EXPECT_TRUE(absl::IsNotFound(RunCommand(command).status()));
}

TEST(CommandTest, ASignalIsACode) {
  const auto result = RunCommand(Shell("kill -KILL $$"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 128 + SIGKILL);
}

TEST(CommandTest, KillsTheProgramAndItsChildrenAtTheLimit) {
  const std::string pid_file = testing::TempDir() + "/command_test_pid";
  unlink(pid_file.c_str());
  Command command = Shell(absl::StrCat("sleep 600 & echo $! >", pid_file, "; wait"));
  command.time_limit = absl::Milliseconds(300);
  const double seconds = SecondsOf([&] {
    const auto result = RunCommand(command);
    EXPECT_TRUE(absl::IsDeadlineExceeded(result.status())) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr("300ms"));
  });
  EXPECT_GE(seconds, 0.3);
  EXPECT_LT(seconds, 30);
  std::ifstream file(pid_file);
  pid_t child = 0;
  ASSERT_TRUE(file >> child);
  // Another process reaps the child.
  std::string state;
  for (int i = 0; i < 500 && kill(child, 0) == 0; ++i) {
    std::ifstream stat(absl::StrCat("/proc/", child, "/stat"));
    std::string id, name;
    stat >> id >> name >> state;
    if (state == "Z") break;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(state == "Z" || kill(child, 0) != 0) << state;
}

TEST(CommandTest, AChildThatKeepsTheOutputOpenDelaysNothing) {
  const double seconds = SecondsOf([] {
    const auto result = RunCommand(Shell("sleep 600 & echo done"));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->standard_output, "done\n");
  });
  EXPECT_LT(seconds, 20);
}

TEST(CommandTest, ReadsLongOutputsWhole) {
  const auto result = RunCommand(Shell("head -c 3000000 /dev/zero; head -c 1000000 /dev/zero >&2"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->standard_output.size(), 3000000u);
  EXPECT_EQ(result->standard_error.size(), 1000000u);
}

TEST(CommandTest, AnEndlessOutputIsAnError) {
  Command command = Shell("cat /dev/zero");
  command.most_output = 1 << 20;
  EXPECT_TRUE(absl::IsResourceExhausted(RunCommand(command).status()));
}

TEST(CommandTest, LeavesNoFileOpen) {
  const auto count = [] {
    int files = 0;
    for (int fd = 0; fd < 256; ++fd) files += fcntl(fd, F_GETFD) != -1;
    return files;
  };
  const int before = count();
  Command slow = Shell("sleep 600");
  slow.time_limit = absl::Milliseconds(20);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(RunCommand(Shell("true")).ok());
    EXPECT_FALSE(RunCommand(slow).ok());
  }
  EXPECT_EQ(count(), before);
}

TEST(CommandTest, TheProgramReadsTheInput) {
  Command command = Shell("wc -c");
  command.input = std::string(200'000, 'x');
  const auto counted = RunCommand(command);
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_EQ(counted->standard_output, "200000\n");
  command.arguments = {"-s"};
  command.input = "echo a\nexit 3\n";
  const auto script = RunCommand(command);
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_EQ(script->standard_output, "a\n");
  EXPECT_EQ(script->exit_code, 3);
}

TEST(CommandTest, QuotesForTheShell) {
  EXPECT_EQ(ShellQuote(""), "''");
  EXPECT_EQ(ShellQuote("a b$c`d\"e\\f|g"), "'a b$c`d\"e\\f|g'");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
}

}  // namespace
}  // namespace tandem
