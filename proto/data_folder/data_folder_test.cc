#include "proto/data_folder/data_folder.h"

#include <cstdlib>
#include <fstream>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class DataFolderTest : public ::testing::Test {
 protected:
  DataFolderTest() : folder_(fs::path(::testing::TempDir()) / "data_folder_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void Add(const std::string& name) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << "x";
  }
  // Returns the paths of files relative to the folder.
  std::set<std::string> Files() {
    std::set<std::string> files;
    status_ = WalkDataFolder(folder_.string(), [&](const fs::path& path, bool is_folder) {
      if (!is_folder) files.insert(path.string().substr(folder_.string().size() + 1));
    });
    return files;
  }
  const fs::path folder_;
  absl::Status status_;
};

TEST_F(DataFolderTest, SkipsHiddenNamesAtAnyDepth) {
  for (const char* name : {"a.png", "deep/er/b.png", ".hidden.png", "deep/.git/c.png", "deep/@eaDir/d.png",
                           "__MACOSX/deep/e.png", "deep/._b.png"}) {
    Add(name);
  }
  EXPECT_THAT(Files(), UnorderedElementsAre("a.png", "deep/er/b.png"));
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_TRUE(IsSkippedPath("a/.b/c"));
  EXPECT_TRUE(IsSkippedPath("__MACOSX/c"));
  EXPECT_FALSE(IsSkippedPath("a.b/c"));
  EXPECT_FALSE(IsSkippedPath("./a/./b"));
  EXPECT_TRUE(IsSkippedPath("./.a/b"));
}

TEST_F(DataFolderTest, FollowsLinksToFilesAndFolders) {
  Add("real/a.png");
  Add("classes/cat/b.png");
  fs::create_directory_symlink(folder_ / "real", folder_ / "classes/cat/more");
  fs::create_symlink(folder_ / "real/a.png", folder_ / "classes/cat/c.png");
  fs::create_symlink(folder_ / "nowhere", folder_ / "classes/cat/d.png");
  EXPECT_THAT(Files(), UnorderedElementsAre("real/a.png", "classes/cat/b.png", "classes/cat/c.png",
                                            "classes/cat/more/a.png"));
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(DataFolderTest, NamesALinkThatLeadsBack) {
  Add("cat/a.png");
  fs::create_directory_symlink(folder_, folder_ / "cat/back");
  EXPECT_THAT(Files(), UnorderedElementsAre("cat/a.png"));
  EXPECT_THAT(status_.message(), HasSubstr("cat/back is a link back to the folder"));
}

TEST_F(DataFolderTest, AMissingFolderIsAnError) {
  EXPECT_THAT(WalkDataFolder((folder_ / "none").string(), [](const fs::path&, bool) {}).message(),
              HasSubstr("none cannot be read: No such file"));
}

TEST_F(DataFolderTest, KnowsPictures) {
  for (const char* name :
       {"a.JPG", "a.jpeg", "a.jpe", "a.jfif", "a.Png", "a.webp", "a.bmp", "a.tif", "a.TIFF", "a.gif"}) {
    EXPECT_TRUE(IsPictureName(name)) << name;
  }
  for (const char* name : {"a.heic", "a.txt", "jpg", "a.jpg.txt"}) EXPECT_FALSE(IsPictureName(name)) << name;
  EXPECT_TRUE(IsPictureContent("\xFF\xD8\xFF\xE0"));
  EXPECT_TRUE(IsPictureContent("RIFF1234WEBPVP8 "));
  EXPECT_FALSE(IsPictureContent("RIFF1234WAVE"));
  EXPECT_FALSE(IsPictureContent("RIFF"));
  EXPECT_FALSE(IsPictureContent("BMI,age,height,weight\n1,2,3,4\n"));
  EXPECT_TRUE(IsPictureContent(absl::string_view("BM\0\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0", 18)));
}

TEST_F(DataFolderTest, KnowsArchives) {
  for (const char* name : {"a.zip", "a/b.TAR.GZ", "a.tgz", "a.tar.zst", "https://host/a.zip#sha256=00"}) {
    EXPECT_TRUE(IsArchiveName(name)) << name;
  }
  for (const char* name : {"a", "zip", "a.csv.gz", "s3://bucket/a"})
    EXPECT_FALSE(IsArchiveName(name)) << name;
}

TEST_F(DataFolderTest, FindsTheParts) {
  const auto parts = [&] { return *FindDataParts(folder_.string()); };
  Add("Train/cat/a.png");
  Add("Test/cat/a.png");
  Add("README.txt");
  EXPECT_EQ(parts().train, (folder_ / "Train").string());
  EXPECT_EQ(parts().validation, "");
  EXPECT_EQ(parts().test, (folder_ / "Test").string());
  Add("valid/cat/a.png");
  EXPECT_EQ(parts().validation, (folder_ / "valid").string());
  Add("val/cat/a.png");
  EXPECT_THAT(FindDataParts(folder_.string()).status().message(), HasSubstr("two folders for the same part"));
  fs::remove_all(folder_ / "val");
  Add("annotations/a.xml");
  EXPECT_EQ(parts().train, (folder_ / "Train").string());
  fs::rename(folder_ / "Train", folder_ / "training");
  fs::rename(folder_ / "Test", folder_ / "testing");
  EXPECT_EQ(parts().train, (folder_ / "training").string());
  EXPECT_EQ(parts().test, (folder_ / "testing").string());
  fs::remove_all(folder_ / "testing");
  fs::remove_all(folder_ / "valid");
  // "train" may be a class beside others.
  EXPECT_EQ(parts().train, "");
  fs::remove_all(folder_ / "annotations");
  EXPECT_EQ(parts().train, (folder_ / "training").string());
}

}  // namespace
}  // namespace tandem
