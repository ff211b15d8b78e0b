#include "server/workers/job_disk_use.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "server/store/eventually.h"
#include "server/store/temporary_folder.h"
#include "server/store/without_privileges.h"
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
  // Returns a file's space on the disk.
  int64_t Taken(const std::string& job, const std::string& file) const {
    struct stat info = {};
    EXPECT_EQ(lstat(PathOf(job, file).c_str(), &info), 0) << job << " " << file;
    return info.st_blocks * 512;
  }
  static v1::Job Job(const std::string& id, const std::string& user,
                     v1::JobState state = v1::JOB_STATE_SUCCEEDED) {
    v1::Job job;
    job.set_state(state);
    job.set_name("jobs/" + id);
    job.set_user(user);
    return job;
  }
  using Names = std::vector<std::pair<std::string, std::string>>;
  int64_t Sum(const Names& files) const {
    int64_t bytes = 0;
    for (const auto& [job, file] : files) bytes += Taken(job, file);
    return bytes;
  }
  // Returns true if the user's jobs soon take the space of these files.
  bool Comes(const std::string& user, const Names& files) {
    return Eventually([&] { return use_.BytesOf(user) == Sum(files); });
  }
  bool ComesToBytes(const std::string& user, int64_t bytes) {
    return Eventually([&] { return use_.BytesOf(user) == bytes; });
  }

  TemporaryFolder folder_;
  const std::string jobs_folder_ = folder_.path() + "/jobs";
  static constexpr int kMostEntries = 500;
  JobDiskUse use_{jobs_folder_, absl::Milliseconds(10), kMostEntries};
};

TEST_F(JobDiskUseTest, CountsWhatAUsersJobsHave) {
  const std::pair<std::string, std::string> kOldModel{"old", "model.safetensors"},
      kSpool{"old", "attempt-1/spool"}, kFirst{"new", "checkpoint-1.safetensors"},
      kSecond{"new", "checkpoint-2.safetensors"}, kNewModel{"new", "model.safetensors"};
  Write("old", "model.safetensors", 100'000);
  Write("old", "attempt-1/spool", 24);
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"old", "ann", false}, {"gone", "ann", false}}; });
  EXPECT_TRUE(Comes("ann", {kOldModel, kSpool}));
  // A training job grows, and removed files no longer count.
  use_.OnMoved(Job("new", "ann", v1::JOB_STATE_QUEUED));
  Write("new", "checkpoint-1.safetensors", 50'000);
  EXPECT_TRUE(Comes("ann", {kOldModel, kSpool, kFirst}));
  Write("new", "checkpoint-2.safetensors", 60'000);
  EXPECT_TRUE(Comes("ann", {kOldModel, kSpool, kFirst, kSecond}));
  std::filesystem::remove(PathOf("new", "checkpoint-1.safetensors"));
  EXPECT_TRUE(Comes("ann", {kOldModel, kSpool, kSecond}));
  // Files that its worker writes at its end also count.
  Write("new", "model.safetensors", 76);
  use_.OnMoved(Job("new", "ann"));
  EXPECT_TRUE(Comes("ann", {kOldModel, kSpool, kSecond, kNewModel}));
  EXPECT_EQ(use_.BytesOf("bob"), 0);
  // Until the removal, which may fail.
  use_.OnDeleted(Job("old", "ann"));
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(use_.BytesOf("ann"), Sum({kOldModel, kSpool, kSecond, kNewModel}));
  EXPECT_TRUE(use_.IsRemoving("ann"));
  EXPECT_FALSE(use_.IsRemoving("bob"));
  std::filesystem::remove_all(jobs_folder_ + "/old");
  EXPECT_TRUE(Comes("ann", {kSecond, kNewModel}));
  // The files may be gone before their folder.
  EXPECT_TRUE(Eventually([&] { return !use_.IsRemoving("ann"); }));
  // An unknown job also counts.
  Write("unknown", "log", 100);
  use_.OnDeleted(Job("unknown", "ann"));
  EXPECT_TRUE(Comes("ann", {kSecond, kNewModel, {"unknown", "log"}}));
  std::filesystem::remove_all(jobs_folder_ + "/unknown");
  EXPECT_TRUE(Comes("ann", {kSecond, kNewModel}));
  // A symbolic link counts only itself.
  use_.OnMoved(Job("other", "bob", v1::JOB_STATE_QUEUED));
  Write("other", "file", 10);
  std::filesystem::create_symlink("/usr", PathOf("other", "link"));
  EXPECT_TRUE(Comes("bob", {{"other", "file"}}));
  use_.Stop();
}

// The sum may be too large, but never too small.
TEST_F(JobDiskUseTest, ASharedFileCountsForEachJobAndSoOutlivesItsFirst) {
  const std::string model = PathOf("source", "model.safetensors");
  Write("source", "model.safetensors", 100'000);
  const int64_t taken = Taken("source", "model.safetensors");
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"source", "ann", false}}; });
  EXPECT_TRUE(ComesToBytes("ann", taken));
  // A job that starts from it, and a fork with a checkpoint of that job.
  std::filesystem::create_directories(folder_.path() + "/kept-weights");
  std::filesystem::create_hard_link(model, KeptWeightsPath(jobs_folder_ + "/a"));
  Write("a", "checkpoint-1.safetensors", 50'000);
  const int64_t checkpoint = Taken("a", "checkpoint-1.safetensors");
  use_.OnMoved(Job("a", "ann", v1::JOB_STATE_QUEUED));
  EXPECT_TRUE(ComesToBytes("ann", 2 * taken + checkpoint));
  std::filesystem::create_directories(jobs_folder_ + "/fork");
  std::filesystem::create_hard_link(PathOf("a", "checkpoint-1.safetensors"),
                                    PathOf("fork", "checkpoint-1.safetensors"));
  use_.OnMoved(Job("fork", "bob", v1::JOB_STATE_QUEUED));
  EXPECT_TRUE(ComesToBytes("bob", checkpoint));
  // The file counts as long as a name is left, although nobody measures the other jobs again.
  use_.OnMoved(Job("a", "ann"));
  use_.OnDeleted(Job("source", "ann"));
  std::filesystem::remove_all(jobs_folder_ + "/source");
  EXPECT_TRUE(ComesToBytes("ann", taken + checkpoint));
  use_.OnDeleted(Job("a", "ann"));
  std::filesystem::remove_all(jobs_folder_ + "/a");
  EXPECT_TRUE(ComesToBytes("ann", 0));
  EXPECT_EQ(use_.BytesOf("bob"), checkpoint);
  use_.Stop();
}

// A hijacked worker may create any files in its job's folder.
TEST_F(JobDiskUseTest, AFileCountsWhatItTakesAndNotWhatItSays) {
  Write("a", "log", 5000);
  // Each claims to have 8 TiB.
  for (int i = 0; i < 3; ++i) {
    const std::string name = "hollow-" + std::to_string(i) + (i == 0 ? ".safetensors" : "");
    Write("a", name, 1);
    std::filesystem::resize_file(PathOf("a", name), uintmax_t{1} << 43);
  }
  const Names files = {{"a", "log"}, {"a", "hollow-0.safetensors"}, {"a", "hollow-1"}, {"a", "hollow-2"}};
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"a", "ann", true}}; });
  EXPECT_TRUE(Comes("ann", files));
  EXPECT_GT(use_.BytesOf("ann"), 0);
  EXPECT_LT(use_.BytesOf("ann"), 1 << 20);
  // Space beyond the file's end also counts.
  Write("a", "reserved", 1);
  const int fd = open(PathOf("a", "reserved").c_str(), O_RDWR | O_CLOEXEC);
  const bool reserves = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 8 << 20) == 0;
  close(fd);
  if (reserves) {
    Names with_reserved = files;
    with_reserved.emplace_back("a", "reserved");
    EXPECT_TRUE(Comes("ann", with_reserved));
    EXPECT_GE(use_.BytesOf("ann"), 8 << 20);
  }
  use_.Stop();
}

// Hiding files does not avoid a quota, and reading does not take a file descriptor per folder.
TEST_F(JobDiskUseTest, FoldersThatAreTooDeepCountAsMoreThanAnyQuota) {
  const WithoutPrivileges without_privileges;
  std::string deep = "a0";
  for (int i = 1; i < 12; ++i) deep += "/a" + std::to_string(i);
  Write("honest", deep + "/file", 100);
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"honest", "bob", true}, {"hidden", "ann", true}}; });
  EXPECT_TRUE(Comes("bob", {{"honest", deep + "/file"}}));
  for (int i = 0; i < 20; ++i) deep += "/b" + std::to_string(i);
  Write("hidden", deep + "/file", 100);
  Write("hidden", "log", 100);
  EXPECT_TRUE(ComesToBytes("ann", int64_t{1} << 50));
  // It counts until the folders are removed.
  std::filesystem::remove_all(PathOf("hidden", "a0"));
  EXPECT_TRUE(Comes("ann", {{"hidden", "log"}}));
  // A closed folder also counts.
  Write("hidden", "closed/file", 100);
  std::filesystem::permissions(PathOf("hidden", "closed"), std::filesystem::perms::none);
  EXPECT_TRUE(ComesToBytes("ann", int64_t{1} << 50));
  // It counts until its folder is removed, not only until the job's deletion.
  use_.OnDeleted(Job("hidden", "ann"));
  std::filesystem::permissions(PathOf("hidden", "closed"), std::filesystem::perms::owner_all);
  EXPECT_TRUE(Comes("ann", {{"hidden", "log"}, {"hidden", "closed/file"}}));
  std::filesystem::remove_all(jobs_folder_ + "/hidden");
  EXPECT_TRUE(ComesToBytes("ann", 0));
  use_.Stop();
}

// Many entries take inodes, and the daemon's memory while it reads.
TEST_F(JobDiskUseTest, MoreEntriesThanAnyJobHasCountAsMoreThanAnyQuota) {
  Write("crowded", "log", 100);
  // With the log and their folder, there is one entry too many.
  for (int i = 0; i < kMostEntries - 1; ++i) {
    std::filesystem::create_directories(PathOf("crowded", "many/" + std::to_string(i)));
  }
  use_.Start([] { return std::vector<JobDiskUse::Owned>{{"crowded", "ann", true}}; });
  EXPECT_TRUE(ComesToBytes("ann", int64_t{1} << 50));
  std::filesystem::remove(PathOf("crowded", "many/0"));
  EXPECT_TRUE(Comes("ann", {{"crowded", "log"}}));
  use_.Stop();
}

// Their paths take the daemon's memory.
TEST_F(JobDiskUseTest, ManyFoldersBelowLongNamesCountAsMoreThanAnyQuota) {
  Write("wide", "log", 100);
  std::string parent = PathOf("wide", std::string(255, 'a'));
  while (parent.size() < 3500) parent += "/" + std::string(255, 'a');
  std::filesystem::create_directories(parent);
  for (int i = 0; i < 1300; ++i) {
    std::filesystem::create_directory(parent + "/" + std::to_string(i));
  }
  JobDiskUse use(jobs_folder_, absl::Milliseconds(10));
  use.Start([] { return std::vector<JobDiskUse::Owned>{{"wide", "ann", true}}; });
  const auto comes_to = [&use](int64_t bytes) {
    return Eventually([&] { return use.BytesOf("ann") == bytes; });
  };
  EXPECT_TRUE(comes_to(int64_t{1} << 50));
  for (int i = 0; i < 650; ++i) std::filesystem::remove(parent + "/" + std::to_string(i));
  EXPECT_TRUE(comes_to(Taken("wide", "log")));
  use.Stop();
}

// Together they exceed 2^63.
TEST_F(JobDiskUseTest, AnyNumberOfHiddenJobsIsMoreThanAnyQuota) {
  JobDiskUse use(jobs_folder_, absl::Milliseconds(10), /*most_entries=*/0);
  std::filesystem::create_directories(PathOf("job", "hidden"));
  // Each job's folder is a name of this one folder, because creating so many takes long.
  std::vector<JobDiskUse::Owned> jobs;
  for (int i = 0; i < 8192; ++i) {
    std::string id = "job";
    for (int bit = 0; bit < 13; ++bit) id += (i >> bit & 1) != 0 ? "/." : "/";
    jobs.push_back({id, "ann", true});
  }
  const auto comes_to = [&use](const std::string& user, int64_t bytes) {
    return Eventually([&] { return use.BytesOf(user) == bytes; }, absl::Seconds(30));
  };
  use.Start([&jobs] { return jobs; });
  EXPECT_TRUE(comes_to("ann", int64_t{1} << 62));
  // Measured in the next round, after all of ann's.
  use.OnMoved(Job("job", "bob", v1::JOB_STATE_QUEUED));
  EXPECT_TRUE(comes_to("bob", int64_t{1} << 50));
  EXPECT_EQ(use.BytesOf("ann"), int64_t{1} << 62);
  // No more is subtracted than was added.
  std::filesystem::remove(PathOf("job", "hidden"));
  EXPECT_TRUE(comes_to("ann", 0));
  use.Stop();
}

}  // namespace
}  // namespace tandem
