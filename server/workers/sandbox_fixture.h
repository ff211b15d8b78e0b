#ifndef TANDEM_SERVER_WORKERS_SANDBOX_FIXTURE_H_
#define TANDEM_SERVER_WORKERS_SANDBOX_FIXTURE_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"
#include "server/workers/sandbox.h"
#include "server/workers/sandbox_support.h"

namespace tandem {

// In the child: returns 0 if the call worked, or errno.
inline int Result(long returned) { return returned >= 0 ? 0 : errno; }

inline int OpenFor(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
  const int result = Result(file);
  if (file >= 0) close(file);
  return result;
}

// Tests the rights of a confined process. Each case is a child process, because a sandbox is permanent.
class SandboxTest : public testing::Test {
 protected:
  static constexpr int kRefused = 200;

  void SetUp() override {
    own_ = folder_.path() + "/job";
    data_ = folder_.path() + "/data";
    other_ = folder_.path() + "/other";
    for (const std::string& path : {own_, data_, other_}) {
      ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
      std::ofstream(path + "/file") << "text";
    }
    policy_.read = {data_};
    policy_.write = {own_};
  }

  // Returns the result of `act` in a confined process; -signal if a signal killed it.
  int InSandbox(const std::function<int()>& act, SandboxMode mode = SandboxMode::kBestEffort) const {
    const pid_t child = fork();
    if (child == 0) {
      const absl::StatusOr<SandboxState> state = EnterSandbox(mode, policy_);
      _exit(state.ok() ? act() : kRefused);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  TemporaryFolder folder_;
  std::string own_, data_, other_;
  SandboxPolicy policy_;
};

#define SKIP_WITHOUT_LANDLOCK() \
  if (LandlockVersion() < 1) GTEST_SKIP() << "this kernel has no Landlock"
#define SKIP_WITHOUT_FILTERS() \
  if (!HasSyscallFilter()) GTEST_SKIP() << "this kernel filters no system calls"

}  // namespace tandem

#endif  // TANDEM_SERVER_WORKERS_SANDBOX_FIXTURE_H_
