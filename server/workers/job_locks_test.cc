#include "server/workers/job_locks.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/base/env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"
#include "server/workers/job_folder.h"
#include "server/workers/worker_record.h"

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

TEST(JobLocksTest, RemovesTheRecordsOfUnwatchedJobs) {
  const TemporaryFolder temporary;
  const std::string jobs_folder = temporary.path() + "/jobs";
  // A job's id may have dots.
  const std::vector<std::string> ids = {"old.2-a", "new.2-b", "new", "x.tmp-c"};
  for (const std::string& id : ids) {
    std::filesystem::create_directories(jobs_folder + "/" + id);
    ASSERT_TRUE(WriteWorkerRecord(jobs_folder + "/" + id, {.attempt = 1, .workers = 1}).ok());
  }
  const std::string unfinished = WorkerRecordPath(jobs_folder + "/gone.1-d") + kUnfinishedEnding;
  std::ofstream(unfinished) << "";
  std::vector<std::string> asked;
  RemoveStaleRecords(jobs_folder, [&asked](const std::string& id) {
    asked.push_back(id);
    return id == "new.2-b";
  });
  EXPECT_THAT(asked, testing::UnorderedElementsAre("old.2-a", "new.2-b", "new", "x.tmp-c", "gone.1-d"));
  for (const std::string& id : ids) {
    EXPECT_EQ(ReadWorkerRecord(jobs_folder + "/" + id).has_value(), id == "new.2-b") << id;
  }
  EXPECT_FALSE(std::filesystem::exists(unfinished));
}

}  // namespace
}  // namespace tandem
