#include "server/workers/owner_mode.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace tandem {
namespace {

mode_t ModeOf(const std::string& path) {
  struct stat file = {};
  EXPECT_EQ(lstat(path.c_str(), &file), 0) << path;
  return file.st_mode & 07777;
}

TEST(OwnerModeTest, OpensWhatWasClosedAndNothingElse) {
  const std::string folder = testing::TempDir() + "/folder", file = folder + "/file", link = folder + "/link",
                    target = testing::TempDir() + "/target";
  std::filesystem::create_directory(folder);
  for (const std::string& path : {file, target}) std::ofstream(path) << "content";
  std::filesystem::create_symlink(target, link);
  ASSERT_EQ(chmod(file.c_str(), 0040), 0);
  ASSERT_EQ(chmod(target.c_str(), 0), 0);
  for (const std::string& path : {file, link, folder + "/nothing"}) RestoreOwnerMode(path);
  EXPECT_EQ(ModeOf(file), 0640);
  EXPECT_EQ(ModeOf(target), 0);
  ASSERT_EQ(chmod(folder.c_str(), 0), 0);
  RestoreOwnerMode(folder);
  EXPECT_EQ(ModeOf(folder), 0700);
}

}  // namespace
}  // namespace tandem
