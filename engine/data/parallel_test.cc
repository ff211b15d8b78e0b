#include "engine/data/parallel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>

namespace tandem {
namespace {

// Returns the number of finished calls of eight, or -1 if a call failed.
int RunEight() {
  std::atomic<int> done = 0;
  for (const absl::Status& status : RunInParallel(8, [&done](size_t) {
         ++done;
         return absl::OkStatus();
       })) {
    if (!status.ok()) return -1;
  }
  return done;
}

TEST(ParallelTest, DoesAll) { EXPECT_EQ(RunEight(), 8); }

// A data set may be read under a memory limit that leaves no room for a thread's stack.
TEST(ParallelDeathTest, DoesAllWhereNoThreadCanBeHad) {
#if defined(TANDEM_ASAN) || defined(TANDEM_TSAN)
  GTEST_SKIP() << "sanitizers need memory for themselves";
#endif
  EXPECT_EXIT(
      {
        rlimit limit = {};
        getrlimit(RLIMIT_DATA, &limit);
        limit.rlim_cur = 1 << 20;
        setrlimit(RLIMIT_DATA, &limit);
        std::_Exit(RunEight() == 8 ? 42 : 1);
      },
      testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace tandem
