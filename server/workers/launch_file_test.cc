#include "server/workers/launch_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

class LaunchFileTest : public ::testing::Test {
 protected:
  LaunchFileTest() { std::filesystem::create_directory(folder_.AttemptFolder(2)); }

  absl::StatusCode Code() const { return ReadLaunchFile(folder_, 2).status().code(); }

  const TemporaryFolder state_;
  const JobFolder folder_{state_.path()};
  const std::string path_ = folder_.LaunchPath(2);
};

TEST_F(LaunchFileTest, SaysWhatItSays) {
  EXPECT_EQ(Code(), absl::StatusCode::kNotFound);
  std::ofstream(path_) << "job_id: 'a' what_comes: 7 secret: 'of-a'";
  const auto launch = ReadLaunchFile(folder_, 2);
  ASSERT_TRUE(launch.ok()) << launch.status();
  EXPECT_EQ(launch->job_id(), "a");
  EXPECT_EQ(launch->secret(), "of-a");
  std::ofstream(path_) << "job_id: {";
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);
}

TEST_F(LaunchFileTest, ReadsWhatWasWrittenForTheOwnerAlone) {
  internal::v1::WorkerLaunch launch;
  launch.set_job_id("a");
  launch.set_attempt(2);
  launch.set_secret("of-a");
  const absl::StatusOr<std::string> written = WriteLaunchFile(folder_, launch);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, path_);
  struct stat file = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600);
  const auto read = ReadLaunchFile(folder_, 2);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->secret(), "of-a");
}

// The worker may write to the file, and the next daemon must read it.
TEST_F(LaunchFileTest, IsReadWhateverAWorkerMadeOfIt) {
  std::ofstream(path_) << "job_id: 'a'";
  std::filesystem::resize_file(path_, uintmax_t{1} << 40);
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);

  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);

  std::filesystem::remove(path_);
  std::ofstream(state_.path() + "/elsewhere") << "job_id: 'another'";
  std::filesystem::create_symlink(state_.path() + "/elsewhere", path_);
  EXPECT_FALSE(ReadLaunchFile(folder_, 2).ok());

  std::filesystem::remove(path_);
  std::filesystem::create_directory(path_);
  EXPECT_EQ(Code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tandem
