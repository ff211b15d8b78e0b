#include "engine/base/sha256.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

// An example of FIPS 180-4.
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(Sha256Test, IsTheStandards) {
  EXPECT_EQ(*Sha256Of("abc"), kOfAbc);
  EXPECT_EQ(*Sha256Of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 pieces;
  pieces.Add("a");
  Sha256 moved = std::move(pieces);
  moved.Add("bc");
  EXPECT_EQ(*moved.Finish(), kOfAbc);
  EXPECT_FALSE(moved.Finish().ok());
}

TEST(Sha256Test, ReadsFiles) {
  const std::string path = ::testing::TempDir() + "/sha256_file";
  std::ofstream(path) << std::string(1 << 20, 'x') << "y";
  EXPECT_EQ(*Sha256OfFile(path), *Sha256Of(std::string(1 << 20, 'x') + "y"));
  EXPECT_EQ(Sha256OfFile(path + "_not").status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(Sha256OfFile(::testing::TempDir()).ok());
}

TEST(Sha256Test, ChecksModels) {
  const std::string path = ::testing::TempDir() + "/sha256_model";
  std::ofstream(path) << "abc";
  EXPECT_TRUE(CheckModelSha256(path, kOfAbc).ok());
  const std::string other = *Sha256Of("abd");
  const absl::Status damaged = CheckModelSha256(path, other);
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss);
  for (const std::string& part :
       {path, std::string(kOfAbc).substr(0, 12), other.substr(0, 12), std::string("good copy")}) {
    EXPECT_NE(damaged.message().find(part), absl::string_view::npos) << part << " in " << damaged;
  }
  // The job's record has no SHA-256.
  EXPECT_TRUE(CheckModelSha256(path, "").ok());
  EXPECT_EQ(CheckModelSha256(path + "_not", kOfAbc).code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tandem
