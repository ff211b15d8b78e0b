#include "server/workers/job_disk_use.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "server/store/temporary_folder.h"
#include "server/workers/kept_weights.h"

namespace tandem {
namespace {

class JobDiskUseTest : public testing::Test {
 protected:
  std::string PathOf(const std::string& job, const std::string& file) const {
    return jobs_folder_ + "/" + job + "/" + file;
  }
  void Write(const std::string& job, const std::string& file, size_t bytes) {
    const std::filesystem::path path = PathOf(job, file);
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
  const std::string jobs_folder_ = folder_.path() + "/jobs";
  JobDiskUse use_{jobs_folder_, absl::Milliseconds(10)};
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
  std::filesystem::remove(PathOf("new", "checkpoint-1.safetensors"));
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
  std::filesystem::create_symlink("/usr", PathOf("other", "link"));
  EXPECT_TRUE(Comes("bob", 10));
  use_.Stop();
}

TEST_F(JobDiskUseTest, AFileWithSeveralNamesCountsOnce) {
  const std::string model = PathOf("source", "model.safetensors");
  Write("source", "model.safetensors", 1000);
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"source", "ann", false}}; });
  EXPECT_TRUE(Comes("ann", 1000));
  // Jobs of a sweep that begin with it, and a fork that has a checkpoint of one: of ann's no byte more than
  // what each has of its own.
  std::filesystem::create_directories(folder_.path() + "/kept-weights");
  for (const std::string job : {"a", "b"}) {
    std::filesystem::create_hard_link(model, KeptWeightsPath(jobs_folder_ + "/" + job));
    Write(job, "worker.log", 10);
    use_.OnQueued(Job(job, "ann"));
  }
  EXPECT_TRUE(Comes("ann", 1020));
  Write("a", "checkpoint-1.safetensors", 500);
  std::filesystem::create_directories(jobs_folder_ + "/fork");
  std::filesystem::create_hard_link(PathOf("a", "checkpoint-1.safetensors"),
                                    PathOf("fork", "checkpoint-1.safetensors"));
  use_.OnQueued(Job("fork", "ann"));
  EXPECT_TRUE(Comes("ann", 1520));
  // It is bob's too, who keeps it when ann does not.
  std::filesystem::create_hard_link(model, KeptWeightsPath(jobs_folder_ + "/c"));
  Write("c", "worker.log", 1);
  use_.OnQueued(Job("c", "bob"));
  EXPECT_TRUE(Comes("bob", 1001));
  // It counts as long as one name is left.
  use_.OnDeleted(Job("source", "ann"));
  std::filesystem::remove_all(jobs_folder_ + "/source");
  EXPECT_EQ(use_.BytesOf("ann"), 1520);
  use_.OnDeleted(Job("a", "ann"));
  EXPECT_TRUE(Comes("ann", 1510));
  std::filesystem::remove(KeptWeightsPath(jobs_folder_ + "/b"));
  EXPECT_TRUE(Comes("ann", 510));
  use_.OnDeleted(Job("fork", "ann"));
  use_.OnDeleted(Job("b", "ann"));
  EXPECT_EQ(use_.BytesOf("ann"), 0);
  EXPECT_EQ(use_.BytesOf("bob"), 1001);
  use_.Stop();
}

}  // namespace
}  // namespace tandem
