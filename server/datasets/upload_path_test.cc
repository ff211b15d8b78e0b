#include "server/datasets/upload_path.h"

#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(UploadPathTest, StaysInside) {
  for (const char* path : {"train.csv", "a/b/c.png", "..a", "a..", "...", ".hidden", "a b/ü.txt"}) {
    EXPECT_TRUE(CheckUploadPath(path).ok()) << path;
  }
  EXPECT_TRUE(CheckUploadPath(std::string(255, 'a')).ok());
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
