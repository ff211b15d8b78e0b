#include "server/workers/untrusted_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/store/temporary_folder.h"

namespace tandem {
namespace {

using testing::HasSubstr;

class UntrustedFileTest : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/file";
};

TEST_F(UntrustedFileTest, ReadsRegularFiles) {
  EXPECT_TRUE(absl::IsNotFound(ReadUntrustedFile(path_, 10).status()));
  std::ofstream(path_) << "0123456789";
  EXPECT_EQ(*ReadUntrustedFile(path_, 10), "0123456789");
  EXPECT_EQ(*ReadUntrustedTail(path_, 100), "0123456789");
  EXPECT_EQ(*ReadUntrustedTail(path_, 3), "789");
  const absl::Status large = ReadUntrustedFile(path_, 9).status();
  EXPECT_TRUE(absl::IsDataLoss(large));
  EXPECT_THAT(std::string(large.message()), HasSubstr("it has 10 bytes, more than 9"));
}

TEST_F(UntrustedFileTest, NeitherBlocksAtAPipeNorFollowsALink) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(ReadUntrustedFile(path_, 10).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadUntrustedTail(path_, 10).status()));
  const std::string link = folder_.path() + "/link";
  std::ofstream(folder_.path() + "/other") << "secret";
  std::filesystem::create_symlink("other", link);
  EXPECT_TRUE(absl::IsDataLoss(ReadUntrustedFile(link, 10).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadUntrustedTail(folder_.path(), 10).status()));
}

}  // namespace
}  // namespace tandem
