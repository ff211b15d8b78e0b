#include "server/workers/worker_record.h"

#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/synchronization/notification.h"
#include "engine/base/env.h"
#include "gtest/gtest.h"
#include "server/workers/worker_process.h"

namespace tandem {
namespace {

std::string JobFolderOf(const std::string& id) { return testing::TempDir() + "/state/jobs/" + id; }

class WorkerRecordTest : public testing::Test {
 protected:
  WorkerRecordTest() {
    for (const char* id : {"a", "b", "c"}) std::filesystem::create_directories(JobFolderOf(id));
  }
};

TEST_F(WorkerRecordTest, IsReadAsItWasWritten) {
  const std::string folder = JobFolderOf("a");
  EXPECT_FALSE(ReadWorkerRecord(folder).has_value());
  ASSERT_TRUE(WriteWorkerRecord(folder, {.attempt = 3, .workers = 2}).ok());
  std::optional<WorkerRecord> record = ReadWorkerRecord(folder);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->attempt, 3);
  EXPECT_FALSE(record->complete());
  const WorkerRecord two = {.attempt = 3, .workers = 2, .processes = {{12, 345}, {13, 678}}};
  ASSERT_TRUE(WriteWorkerRecord(folder, two).ok());
  record = ReadWorkerRecord(folder);
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(record->complete());
  ASSERT_EQ(record->processes.size(), 2);
  EXPECT_EQ(record->processes[1].pid, 13);
  EXPECT_EQ(record->processes[1].start, 678);
  RemoveWorkerRecord(folder);
  EXPECT_FALSE(ReadWorkerRecord(folder).has_value());
}

TEST_F(WorkerRecordTest, OfAnotherStartOfTheMachineIsNone) {
  const std::string folder = JobFolderOf("b");
  ASSERT_TRUE(WriteWorkerRecord(folder, {.attempt = 1, .processes = {{1, 1}}}).ok());
  std::string text = ContentOrEmpty(WorkerRecordPath(folder));
  ASSERT_EQ(text.substr(0, 7), "system=");
  text[7] = text[7] == '0' ? '1' : '0';
  std::ofstream(WorkerRecordPath(folder)) << text;
  EXPECT_FALSE(ReadWorkerRecord(folder).has_value());
}

// The copy's workers are the original's.
TEST_F(WorkerRecordTest, OfACopyOfTheStateFolderIsNone) {
  ASSERT_TRUE(WriteWorkerRecord(JobFolderOf("a"), {.attempt = 1, .processes = {{1, 1}}}).ok());
  const std::string copy = testing::TempDir() + "/copy";
  std::filesystem::copy(testing::TempDir() + "/state", copy, std::filesystem::copy_options::recursive);
  EXPECT_TRUE(std::filesystem::exists(WorkerRecordPath(copy + "/jobs/a")));
  EXPECT_FALSE(ReadWorkerRecord(copy + "/jobs/a").has_value());
  std::filesystem::rename(testing::TempDir() + "/state", testing::TempDir() + "/moved");
  EXPECT_TRUE(ReadWorkerRecord(testing::TempDir() + "/moved/jobs/a").has_value());
}

TEST_F(WorkerRecordTest, WhatIsNoRecordIsNone) {
  for (const char* text : {"", "\n", "system=", "attempt=1 workers=1\n", "\xff\xfe"}) {
    const std::string folder = JobFolderOf("c");
    ASSERT_TRUE(WriteWorkerRecord(folder, {}).ok());
    std::ofstream(WorkerRecordPath(folder)) << text;
    EXPECT_FALSE(ReadWorkerRecord(folder).has_value()) << text;
  }
}

TEST_F(WorkerRecordTest, AProcessIsKnownByItsStart) {
  char sleep[] = "sleep", time[] = "600";
  char* const arguments[] = {sleep, time, nullptr};
  pid_t pid = 0;
  ASSERT_EQ(posix_spawnp(&pid, "sleep", nullptr, nullptr, arguments, environ), 0);
  const uint64_t start = StartOfProcess(pid);
  EXPECT_GT(start, 0);
  const auto found = FindWorker({pid, start});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->pid(), pid);
  // An earlier process with the same number.
  EXPECT_EQ(FindWorker({pid, start - 1}).status().code(), absl::StatusCode::kNotFound);
  kill(pid, SIGKILL);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(FindWorker({pid, start}).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(waitpid(pid, nullptr, 0), pid);
  EXPECT_EQ(FindWorker({pid, start}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(StartOfProcess(pid), 0);
}

// The number was reused for a thread. Some kernels report this differently than an unused number.
TEST_F(WorkerRecordTest, AThreadIsNoProcess) {
  absl::Notification known, seen;
  std::atomic<pid_t> thread_id = 0;
  std::thread thread([&] {
    thread_id = static_cast<pid_t>(syscall(SYS_gettid));
    known.Notify();
    seen.WaitForNotification();
  });
  known.WaitForNotification();
  EXPECT_EQ(FindWorker({thread_id.load(), 1}).status().code(), absl::StatusCode::kNotFound);
  seen.Notify();
  thread.join();
}

}  // namespace
}  // namespace tandem
