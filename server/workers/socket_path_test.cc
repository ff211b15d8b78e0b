#include "server/workers/socket_path.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

class SocketPathTest : public testing::Test {
 protected:
  SocketPathTest() { fs::create_directories(long_); }

  std::string FolderOf(const std::string& state_folder) {
    const absl::StatusOr<std::string> path = PrepareSocketPath(state_folder);
    EXPECT_TRUE(path.ok()) << path.status();
    if (!path.ok()) return "";
    EXPECT_LT(path->size(), sizeof(sockaddr_un::sun_path));
    const fs::path folder = fs::path(*path).parent_path();
    struct stat found;
    EXPECT_EQ(lstat(folder.c_str(), &found), 0);
    EXPECT_TRUE(S_ISDIR(found.st_mode));
    EXPECT_EQ(found.st_mode & 0777, 0700);
    return folder;
  }

  // Not in the tests' own folder, whose path may already be too long.
  const TemporaryFolder temporary_{"/tmp/socket-path-"};
  const std::string& scratch_ = temporary_.path();
  const std::string long_ = scratch_ + "/" + std::string(120, 'x');
};

TEST_F(SocketPathTest, IsInTheStateFolderWhereItMayBe) {
  const std::string folder = FolderOf(scratch_);
  EXPECT_EQ(folder, scratch_ + "/workers");
  chmod(folder.c_str(), 0755);
  EXPECT_EQ(PrepareSocketPath(scratch_).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(SocketPathTest, ANameThatAnotherTookIsLeftToThem) {
  const std::string first = FolderOf(long_);
  EXPECT_EQ(FolderOf(long_), first);
  ASSERT_TRUE(fs::remove(first));
  // Stands for another user's: neither is a folder of this user.
  fs::create_directory_symlink(scratch_, first);
  const std::string second = FolderOf(long_);
  EXPECT_NE(second, first);
  // The next daemon uses the path that its workers know, even if the first name is free again.
  EXPECT_EQ(FolderOf(long_), second);
  ASSERT_TRUE(fs::remove(first));
  EXPECT_EQ(FolderOf(long_), second);
  ASSERT_TRUE(fs::remove(second));
  EXPECT_EQ(FolderOf(long_), second);
  ASSERT_TRUE(fs::remove(second));
  std::ofstream(second) << "taken";
  const std::string third = FolderOf(long_);
  EXPECT_NE(third, second);
  EXPECT_EQ(FolderOf(long_), third);
  fs::remove(second);
  fs::remove(third);
}

TEST_F(SocketPathTest, ACopyOfTheStateFolderHasAFolderOfItsOwn) {
  const std::string first = FolderOf(long_);
  ASSERT_TRUE(fs::remove(first));
  std::ofstream(first) << "taken";
  const std::string noted = FolderOf(long_);
  const std::string copy = long_ + "-copy";
  fs::create_directory(copy);
  fs::copy_file(long_ + "/socket-folder", copy + "/socket-folder");
  const std::string of_copy = FolderOf(copy);
  EXPECT_NE(of_copy, noted);
  EXPECT_EQ(FolderOf(long_), noted);
  EXPECT_EQ(FolderOf(copy), of_copy);
  for (const std::string& one : {first, noted, of_copy}) fs::remove(one);
}

TEST_F(SocketPathTest, ANoteThatNamesAnythingElseIsNotFollowed) {
  const std::string first = FolderOf(long_);
  ASSERT_TRUE(fs::remove(first));
  std::ofstream(first) << "taken";
  const std::string noted = FolderOf(long_);
  std::ifstream file(long_ + "/socket-folder");
  std::string line, state_folder;
  std::getline(file, line);
  std::getline(file, state_folder);
  ASSERT_EQ(line, noted);
  for (const std::string& one : {first, noted}) fs::remove(one);
  for (const std::string& note : {scratch_, std::string("/tmp/tandem-/../x"), std::string()}) {
    std::ofstream(long_ + "/socket-folder") << note << "\n" << state_folder << "\n";
    const std::string folder = FolderOf(long_);
    EXPECT_TRUE(absl::StartsWith(folder, "/tmp/tandem-" + std::to_string(geteuid()) + "-")) << folder;
    fs::remove(folder);
  }
}

}  // namespace
}  // namespace tandem
