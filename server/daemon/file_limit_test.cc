#include "server/daemon/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "gtest/gtest.h"

namespace tandem {
namespace {

rlimit FileLimit() {
  rlimit files = {};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  return files;
}

TEST(FileLimitTest, IsRaisedAsFarAsAllowed) {
  rlimit files = FileLimit();
  const rlim_t hard = files.rlim_max;
  files.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  RaiseFileLimit();
  EXPECT_EQ(FileLimit().rlim_cur, std::min<rlim_t>(hard, 65536));
  EXPECT_EQ(FileLimit().rlim_max, hard);
  // A higher soft limit is not lowered.
  files.rlim_cur = FileLimit().rlim_cur;
  RaiseFileLimit();
  EXPECT_EQ(FileLimit().rlim_cur, files.rlim_cur);
  // The hard limit is not exceeded.
  files.rlim_cur = 64;
  files.rlim_max = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  RaiseFileLimit();
  EXPECT_EQ(FileLimit().rlim_cur, 128);
}

}  // namespace
}  // namespace tandem
