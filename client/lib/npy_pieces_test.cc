#include "client/lib/npy_pieces.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::testing::HasSubstr;

// An NPY file as numpy.save writes it: version 1, data from byte 128.
std::string Npy(const std::string& shape, const std::string& data, const std::string& order = "False") {
  std::string header = absl::StrCat("{'descr': '|u1', 'fortran_order': ", order, ", 'shape': ", shape, ", }");
  header.resize(117, ' ');
  return absl::StrCat("\x93NUMPY", std::string("\x01\x00\x76\x00", 4), header, "\n", data);
}

std::string Problem(const std::string& content, int64_t elements) {
  return std::string(CutNpy(content, elements, 100, 100).status().message());
}

TEST(NpyPiecesTest, PiecesAreTheFilesOfTheirSamples) {
  const auto pieces = CutNpy(Npy("(5, 1, 2)", "aabbccddee"), 2, 4, 100);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  ASSERT_EQ(pieces->size(), 3);
  EXPECT_EQ((*pieces)[0].content, Npy("(2, 1, 2)", "aabb"));
  EXPECT_EQ((*pieces)[1].content, Npy("(2, 1, 2)", "ccdd"));
  EXPECT_EQ((*pieces)[2].content, Npy("(1, 1, 2)", "ee"));
  EXPECT_EQ((*pieces)[0].first_sample, 0);
  EXPECT_EQ((*pieces)[1].first_sample, 2);
  EXPECT_EQ((*pieces)[2].first_sample, 4);
}

TEST(NpyPiecesTest, BothLimitsHold) {
  EXPECT_EQ(CutNpy(Npy("(5, 2)", "aabbccddee"), 2, 100, 1)->size(), 5);
  EXPECT_EQ(CutNpy(Npy("(5, 2)", "aabbccddee"), 2, 1, 100)->size(), 5);
  const auto whole = CutNpy(Npy("(5,)", "abcde"), 1, 100, 100);
  ASSERT_EQ(whole->size(), 1);
  EXPECT_EQ((*whole)[0].content, Npy("(5,)", "abcde"));
}

TEST(NpyPiecesTest, ReadsTheLongHeadersOfVersion2) {
  std::string second = Npy("(2, 2)", "aabb");
  second.replace(6, 4, std::string("\x02\x00\x76\x00\x00\x00", 6));
  const auto pieces = CutNpy(second, 2, 2, 100);
  ASSERT_TRUE(pieces.ok()) << pieces.status();
  EXPECT_EQ((*pieces)[1].content, Npy("(1, 2)", "bb"));
}

TEST(NpyPiecesTest, OtherFilesAreRefused) {
  EXPECT_THAT(Problem(Npy("(2, 3)", "aaabbb", "True"), 3), HasSubstr("numpy.ascontiguousarray"));
  EXPECT_THAT(Problem(Npy("(2, 3)", "aaabbb"), 6), HasSubstr("has 6 elements, but its shape is (2, 3)"));
  EXPECT_THAT(Problem(Npy("(2, 9223372036854775807, 9)", "aabb"), 2), HasSubstr("its shape is"));
  EXPECT_THAT(Problem(Npy("()", "a"), 1), HasSubstr("no dimension of samples"));
  const std::string damaged = "it is no whole file of numpy.save";
  EXPECT_EQ(Problem(Npy("(2, 3)", "aaabb"), 3), damaged);
  EXPECT_EQ(Problem(Npy("(0, 3)", ""), 3), damaged);
  EXPECT_EQ(Problem(Npy("(-2, 3)", "aaabbb"), 3), damaged);
  EXPECT_EQ(Problem("", 3), damaged);
  EXPECT_EQ(Problem(Npy("(2, 3)", "aaabbb").substr(0, 60), 3), damaged);
  EXPECT_EQ(Problem(Npy("(2, 3", "aaabbb"), 3), damaged);
}

}  // namespace
}  // namespace tandem::client
