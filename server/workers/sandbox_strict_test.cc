// Tests restrictions that a sanitizer's runtime would not survive, and that a sanitizer build therefore
// skips. This program is always built without a sanitizer.

#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "engine/base/sanitizer_build.h"
#include "gtest/gtest.h"
#include "server/workers/sandbox_fixture.h"

namespace tandem {
namespace {

static_assert(!kSanitizerBuild);

using SandboxStrictTest = SandboxTest;

TEST_F(SandboxStrictTest, ProgramsAndProcessesAreNotStarted) {
  SKIP_WITHOUT_FILTERS();
  EXPECT_EQ(InSandbox([] { return Result(execl("/bin/true", "true", nullptr)); }), EPERM);
  EXPECT_EQ(InSandbox([] {
              const pid_t child = fork();
              if (child == 0) _exit(0);
              return Result(child);
            }),
            EPERM);
  EXPECT_EQ(InSandbox([] {
              const pid_t child = vfork();
              if (child == 0) _exit(0);
              return Result(child);
            }),
            EPERM);
  // Threads are no processes.
  EXPECT_EQ(InSandbox([] {
              int made = 1;
              std::thread([&made] { made = 0; }).join();
              return made;
            }),
            0);
}

TEST_F(SandboxStrictTest, OtherProcessesAreNotSignalled) {
  SKIP_WITHOUT_FILTERS();
  const pid_t parent = getpid();
  EXPECT_EQ(InSandbox([=] { return Result(kill(parent, 0)); }), EPERM);
  EXPECT_EQ(InSandbox([=] { return Result(kill(-parent, 0)); }), EPERM);
  EXPECT_EQ(InSandbox([] { return Result(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }), EPERM);
  // The process can still exit and abort.
  EXPECT_EQ(InSandbox([] {
              signal(SIGABRT, SIG_DFL);
              abort();
              return 0;
            }),
            -SIGABRT);
}

TEST_F(SandboxStrictTest, MemoryIsLimited) {
  policy_.memory_bytes = int64_t{512} << 20;
  const auto take = [](size_t bytes, int protection) {
    return mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED
               ? errno
               : 0;
  };
  EXPECT_EQ(InSandbox([&] { return take(size_t{256} << 20, PROT_READ | PROT_WRITE); }), 0);
  EXPECT_EQ(InSandbox([&] { return take(size_t{1} << 30, PROT_READ | PROT_WRITE); }), ENOMEM);
  // Reserved memory does not count.
  EXPECT_EQ(InSandbox([&] { return take(size_t{1} << 30, PROT_NONE); }), 0);
}

}  // namespace
}  // namespace tandem
