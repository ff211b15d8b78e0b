#include "proto/data_folder/shards.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShardsTest, APatternNamesItsShardsInTheOrderOfTheirNames) {
  EXPECT_THAT(*ExpandShardPattern("a/x-{008..011}.tar"),
              ElementsAre("a/x-008.tar", "a/x-009.tar", "a/x-010.tar", "a/x-011.tar"));
  EXPECT_THAT(*ExpandShardPattern("{8..11}.tar"), ElementsAre("10.tar", "11.tar", "8.tar", "9.tar"));
  EXPECT_THAT(*ExpandShardPattern("{0..010}")->begin(), "000");
  EXPECT_THAT(*ExpandShardPattern("{red,blue}/{0..1}.tar"),
              ElementsAre("blue/0.tar", "blue/1.tar", "red/0.tar", "red/1.tar"));
  EXPECT_THAT(*ExpandShardPattern("x{,-more}.tar"), ElementsAre("x-more.tar", "x.tar"));
  EXPECT_THAT(*ExpandShardPattern("plain.tar"), ElementsAre("plain.tar"));
  EXPECT_EQ(ExpandShardPattern("{0..99999}.tar")->size(), kMaxShards);
}

TEST(ShardsTest, AWrongPatternIsRefused) {
  const auto fault = [](const std::string& pattern) {
    const absl::Status status = ExpandShardPattern(pattern).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << pattern << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is '")) << pattern;
    return std::string(status.message());
  };
  EXPECT_THAT(fault("a-{0..9.tar"), HasSubstr("'{' without a '}'"));
  EXPECT_THAT(fault("a-0..9}.tar"), HasSubstr("'}' without a '{'"));
  EXPECT_THAT(fault("{a,{b,c}}.tar"), HasSubstr("braces within braces"));
  EXPECT_THAT(fault("{}.tar"), HasSubstr("neither a range"));
  EXPECT_THAT(fault("{a}.tar"), HasSubstr("neither a range"));
  EXPECT_THAT(fault("{a..z}.tar"), HasSubstr("neither a range"));
  EXPECT_THAT(fault("{0..9..2}.tar"), HasSubstr("neither a range"));
  EXPECT_THAT(fault("{-1..9}.tar"), HasSubstr("neither a range"));
  EXPECT_THAT(fault("{0..9999999999999999999}.tar"), HasSubstr("neither a range"));
  EXPECT_THAT(fault("{9..0}.tar"), HasSubstr("larger number first"));
  EXPECT_THAT(fault("{0..100000}.tar"), HasSubstr("more than 100000 shards"));
  EXPECT_THAT(fault("{0..999}/{0..999}.tar"), HasSubstr("more than 100000 shards"));
  EXPECT_THAT(fault("{0..999999999999999999}.tar"), HasSubstr("more than 100000 shards"));
  EXPECT_THAT(fault("{a,a}.tar"), HasSubstr("names a.tar twice"));
}

TEST(ShardsTest, TheBytesOfAPatternAndOfItsPathsAreLimited) {
  // 4,086 bytes and the 10 of "{0..1}.tar".
  const std::string long_name(4086, 'a');
  EXPECT_EQ(ExpandShardPattern(long_name + "{0..1}.tar")->size(), 2);
  EXPECT_THAT(ExpandShardPattern(long_name + "a{0..1}.tar").status().message(),
              HasSubstr("has 4097 bytes; a pattern has at most 4096"));
  const auto is_too_long = [](const std::string& pattern) {
    const absl::Status status = ExpandShardPattern(pattern).status();
    return absl::IsInvalidArgument(status) &&
           std::string(status.message()).find("more than 64 MiB together") != std::string::npos;
  };
  // 100,000 paths of 671 bytes have 67,100,000 bytes, and 64 MiB are 67,108,864.
  EXPECT_EQ(ExpandShardPattern(std::string(666, 'a') + "{00000..99999}")->size(), kMaxShards);
  EXPECT_TRUE(is_too_long(std::string(667, 'a') + "{00000..99999}"));
  EXPECT_TRUE(is_too_long("{00000..99999}" + std::string(667, 'a')));
  EXPECT_TRUE(is_too_long(std::string(300, 'a') + "{000..999}" + std::string(300, 'b') + "{00..99}" +
                          std::string(300, 'c')));
}

TEST(ShardsTest, TheFolderOfAPatternIsBeforeItsFirstBrace) {
  EXPECT_EQ(FolderOfPattern("s3://bucket/train/{a,b}/{0..9}.tar"), "s3://bucket/train/");
  EXPECT_EQ(FolderOfPattern("a/b-{a,b}/c.tar"), "a/");
  EXPECT_EQ(FolderOfPattern("{a,b}.tar"), "");
}

TEST(ShardsTest, AFolderHasItsTarFiles) {
  const fs::path folder = fs::path(::testing::TempDir()) / "shards";
  fs::remove_all(folder);
  fs::create_directories(folder / "b");
  for (const char* name : {"b/0.tar", "a.TAR", "c.tar", ".hidden.tar", "notes.txt", "x.tar.gz"}) {
    std::ofstream(folder / name) << "x";
  }
  const std::string root = folder.string();
  EXPECT_THAT(*ListShards(root), ElementsAre(root + "/a.TAR", root + "/b/0.tar", root + "/c.tar"));
  EXPECT_THAT(*ListShards(root + "/c.tar"), ElementsAre(root + "/c.tar"));
  EXPECT_THAT(*ListShards(root + "/{c,d}.tar"), ElementsAre(root + "/c.tar", root + "/d.tar"));
  std::ofstream(folder / "{c,d}.tar") << "x";
  EXPECT_THAT(*ListShards(root + "/{c,d}.tar"), ElementsAre(root + "/{c,d}.tar"));
  fs::create_directories(folder / "empty");
  EXPECT_THAT(std::string(ListShards(root + "/empty").status().message()), HasSubstr("empty has no shard"));
}

TEST(ShardsTest, AFolderWithSeveralPartsIsRefused) {
  // The path of the folder itself does not count.
  const fs::path folder = fs::path(::testing::TempDir()) / "test-parts";
  const auto list = [&](const std::vector<std::string>& names) {
    fs::remove_all(folder);
    for (const std::string& name : names) {
      fs::create_directories((folder / name).parent_path());
      std::ofstream(folder / name) << "x";
    }
    return ListShards(folder.string());
  };
  const std::vector<std::vector<std::string>> mixed = {{"set1k-train-0000.tar", "set1k-validation-00.tar"},
                                                       {"train/0.tar", "val/0.tar"},
                                                       {"TRAIN0.tar", "other.tar", "a/Test0.tar"},
                                                       {"test-0.tar", "dev-0.tar"}};
  for (const std::vector<std::string>& names : mixed) {
    const absl::Status status = list(names).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << names[0] << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("has shards of several parts of a data set"));
  }
  EXPECT_THAT(std::string(list({"b-val-0.tar", "a-train-0.tar"}).status().message()),
              HasSubstr("such as a-train-0.tar and b-val-0.tar; give each part by a pattern"));
  const std::vector<std::vector<std::string>> alike = {{"train-0.tar", "train/training-1.tar"},
                                                       {"crash-test-0.tar", "normal-0.tar"},
                                                       {"trains-0.tar", "valves-0.tar"}};
  for (const std::vector<std::string>& names : alike) EXPECT_EQ(list(names)->size(), 2) << names[0];
}

}  // namespace
}  // namespace tandem
