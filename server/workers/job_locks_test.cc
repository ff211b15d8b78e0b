#include "server/workers/job_locks.h"

#include <fstream>

#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"

namespace tandem {
namespace {

TEST(JobLocksTest, CountsThoseThatThereCanBe) {
  const TemporaryFolder temporary;
  const JobFolder folder(temporary.path());
  EXPECT_EQ(CountLocks(folder), 1);
  for (int worker = 0; worker < 3; ++worker) std::ofstream(folder.LockPath(worker)) << "";
  EXPECT_EQ(CountLocks(folder), 3);
  // A hijacked worker may leave many locks, and each start of the daemon or the job would open all of them.
  for (int worker = 3; worker < 1500; ++worker) std::ofstream(folder.LockPath(worker)) << "";
  EXPECT_EQ(CountLocks(folder), 1024);
}

}  // namespace
}  // namespace tandem
