#include "server/datasets/upload_path.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(UploadPathTest, StaysInside) {
  for (const char* path : {"train.csv", "a/b/c.png", "..a", "a..", "...", ".hidden", "a b/ü.txt"}) {
    EXPECT_TRUE(CheckUploadPath(path).ok()) << path;
  }
  EXPECT_TRUE(CheckUploadPath(std::string(255, 'a')).ok());
  std::string deep = "f";
  for (int i = 0; i < 31; ++i) deep.insert(0, "d/");
  EXPECT_TRUE(CheckUploadPath(deep).ok());
  EXPECT_THAT(CheckUploadPath("d/" + deep).message(), ::testing::HasSubstr("is 32 folders deep"));
  for (const std::string& path :
       {std::string(), std::string("/etc/passwd"), std::string(".."), std::string("../a"),
        std::string("a/../b"), std::string("a/.."), std::string("."), std::string("./a"), std::string("a//b"),
        std::string("a/"), std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string(256, 'a'), std::string("a/") + std::string(2000, 'b')}) {
    EXPECT_EQ(CheckUploadPath(path).code(), absl::StatusCode::kInvalidArgument) << path;
  }
}

}  // namespace
}  // namespace tandem
