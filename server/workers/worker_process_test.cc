#include "server/workers/worker_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "engine/base/unique_fd.h"
#include "server/workers/exit_codes.h"
#include "server/workers/worker_lock.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(DescribeEndTest, NamesSignals) {
  EXPECT_EQ(DescribeEnd({.known = true, .signal = SIGSEGV}), "was killed by signal 11 (SIGSEGV)");
  EXPECT_THAT(DescribeEnd({.known = true, .signal = SIGKILL}),
              HasSubstr("was killed by signal 9 (SIGKILL): by a person, or by the kernel"));
  // The C library has no name for real-time signals.
  EXPECT_THAT(DescribeEnd({.known = true, .signal = SIGRTMAX}), HasSubstr(" (SIG?)"));
  EXPECT_THAT(DescribeEnd({.known = false}), HasSubstr("nobody knows how"));
}

TEST(DescribeEndTest, EachExitCodeOfAWorkerSaysWhy) {
  const auto text = [](int code) { return DescribeEnd({.known = true, .exit_code = code}); };
  EXPECT_EQ(text(kWorkerDone), "exited with code 0");
  EXPECT_EQ(text(77), "exited with code 77");
  EXPECT_THAT(text(kWorkerBadLaunch), HasSubstr("code 2: it could not use its command line or launch file"));
  EXPECT_THAT(text(kWorkerLockHeld), HasSubstr("code 3: another process held the lock"));
  EXPECT_THAT(text(kWorkerSpoolFailed), HasSubstr("code 4: it could not write its event spool"));
  EXPECT_THAT(text(kWorkerDismissed), HasSubstr("code 5: the daemon had dismissed it"));
  EXPECT_THAT(text(kWorkerDeviceFailed), HasSubstr("code 6: CUDA failed on its GPU"));
  EXPECT_THAT(text(kWorkerGroupFailed), HasSubstr("code 7: training could not continue"));
  EXPECT_THAT(text(kWorkerNotConfined), HasSubstr("code 9: it could not be confined"));
}

// A worker owns its job's folder, and an earlier attempt may have changed it.
TEST(StartWorkerTest, TheLogMustBeAFile) {
  std::string folder = testing::TempDir() + "/start-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const absl::StatusOr<WorkerLock> lock = WorkerLock::Acquire(folder + "/lock");
  ASSERT_TRUE(lock.ok()) << lock.status();
  const ProcessGroup::Command command = {.program = "/bin/true", .arguments = {}, .environment = {}};
  ASSERT_EQ(symlink("elsewhere", (folder + "/link").c_str()), 0);
  EXPECT_FALSE(StartWorker(command, folder + "/link", *lock).ok());
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(StartWorker(command, folder + "/pipe", *lock).ok());
  const UniqueFd reader(open((folder + "/pipe").c_str(), O_RDONLY | O_NONBLOCK));
  EXPECT_THAT(std::string(StartWorker(command, folder + "/pipe", *lock).status().message()),
              HasSubstr("is no regular file; remove it"));
}

}  // namespace
}  // namespace tandem
