#include "engine/base/sha256.h"

#include <fstream>
#include <string>

#include "gtest/gtest.h"

namespace tandem {
namespace {

// From FIPS 180-4's examples.
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

}  // namespace
}  // namespace tandem
