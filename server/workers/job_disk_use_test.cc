#include "server/workers/job_disk_use.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

class JobDiskUseTest : public testing::Test {
 protected:
  void Write(const std::string& job, const std::string& file, size_t bytes) {
    const std::filesystem::path path = folder_.path() + "/" + job + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << std::string(bytes, 'x');
  }
  static v1::Job Job(const std::string& id, const std::string& user) {
    v1::Job job;
    job.set_name("jobs/" + id);
    job.set_user(user);
    return job;
  }
  // Whether the user's jobs come to take so much; soon.
  bool Comes(const std::string& user, int64_t bytes) {
    for (int i = 0; i < 1000 && use_.BytesOf(user) != bytes; ++i) absl::SleepFor(absl::Milliseconds(10));
    return use_.BytesOf(user) == bytes;
  }

  TemporaryFolder folder_;
  JobDiskUse use_{folder_.path(), absl::Milliseconds(10)};
};

TEST_F(JobDiskUseTest, CountsWhatAUsersJobsHave) {
  Write("old", "model.safetensors", 1000);
  Write("old", "attempt-1/spool", 24);
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"old", "ann", false}, {"gone", "ann", false}}; });
  EXPECT_TRUE(Comes("ann", 1024));
  // A job that trains grows, and what it removes counts no more.
  use_.OnQueued(Job("new", "ann"));
  Write("new", "checkpoint-1.safetensors", 500);
  EXPECT_TRUE(Comes("ann", 1524));
  Write("new", "checkpoint-2.safetensors", 600);
  EXPECT_TRUE(Comes("ann", 2124));
  std::filesystem::remove(folder_.path() + "/new/checkpoint-1.safetensors");
  EXPECT_TRUE(Comes("ann", 1624));
  // What its worker writes as it ends counts, too.
  Write("new", "model.safetensors", 76);
  use_.OnTerminal(Job("new", "ann"));
  EXPECT_TRUE(Comes("ann", 1700));
  EXPECT_EQ(use_.BytesOf("bob"), 0);
  use_.OnDeleted(Job("old", "ann"));
  EXPECT_EQ(use_.BytesOf("ann"), 676);
  // A symbolic link is not what it leads to.
  use_.OnQueued(Job("other", "bob"));
  Write("other", "file", 10);
  std::filesystem::create_symlink("/usr", folder_.path() + "/other/link");
  EXPECT_TRUE(Comes("bob", 10));
  use_.Stop();
}

}  // namespace
}  // namespace tandem
