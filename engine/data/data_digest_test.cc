#include "engine/data/data_digest.h"

#include <filesystem>

#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DataDigestTest, IsTheSha256OfAFile) {
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(WriteFile(FreshFolder() + "/a.csv", "abc"));
  const absl::StatusOr<DataDigest> digest = DigestData(spec);
  ASSERT_TRUE(digest.ok()) << digest.status();
  // The example of FIPS 180-4.
  EXPECT_EQ(digest->at("csv.train"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(DataDigestTest, NamesWhatChanged) {
  const std::string folder = FreshFolder();
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(WriteFile(folder + "/a.csv", "x,y\n1,2\n"));
  spec.mutable_csv()->set_validation(WriteFile(folder + "/b.csv", "x,y\n3,4\n"));
  const DataDigest before = *DigestData(spec);
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), IsEmpty());
  // A file of the same length.
  WriteFile(folder + "/b.csv", "x,y\n3,5\n");
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), ElementsAre("csv.validation"));
  std::filesystem::remove(folder + "/b.csv");
  EXPECT_FALSE(DigestData(spec).ok());
}

TEST(DataDigestTest, OfAFolderOfImagesItIsTheImages) {
  const std::string folder = FreshFolder();
  std::filesystem::create_directories(folder + "/cat");
  WriteFile(folder + "/cat/1.png", "a");
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder);
  const DataDigest before = *DigestData(spec);
  WriteFile(folder + "/cat/Thumbs.db", "a");
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), IsEmpty());
  std::filesystem::rename(folder + "/cat/1.png", folder + "/cat/2.png");
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), ElementsAre("image_folder.train"));
}

TEST(DataDigestTest, ImagesOfALinkedClassCountAndHiddenFoldersDoNot) {
  const std::string folder = FreshFolder();
  const std::string elsewhere = FreshFolder();
  std::filesystem::create_directories(folder + "/cat");
  WriteFile(folder + "/cat/1.png", "a");
  WriteFile(elsewhere + "/1.png", "b");
  std::filesystem::create_directory_symlink(elsewhere, folder + "/dog");
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder);
  const DataDigest before = *DigestData(spec);
  std::filesystem::create_directories(folder + "/.thumbnails");
  WriteFile(folder + "/.thumbnails/1.png", "a");
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), IsEmpty());
  WriteFile(elsewhere + "/1.png", "c");
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), ElementsAre("image_folder.train"));
}

TEST(DataDigestTest, SettingsDecideOnTheSamplesToo) {
  v1::DatasetSpec spec;
  spec.mutable_synthetic()->set_classes(2);
  const DataDigest before = *DigestData(spec);
  spec.add_class_names("cat");
  spec.mutable_normalization()->set_scale(2);
  spec.mutable_augmentation();
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), IsEmpty());
  v1::DatasetSpec other = spec;
  other.mutable_synthetic()->set_classes(3);
  EXPECT_THAT(ChangedFields(before, *DigestData(other)), ElementsAre(kDataSettings));
  spec.mutable_validation_split()->set_fraction(0.5);
  EXPECT_THAT(ChangedFields(before, *DigestData(spec)), ElementsAre(kDataSettings));
}

// A moved or renamed table has the same digest.
TEST(DataDigestTest, PathsDoNotCount) {
  const std::string folder = FreshFolder();
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(WriteFile(folder + "/a.csv", "x,y\n1,2\n"));
  const DataDigest before = *DigestData(spec);
  spec.mutable_csv()->set_train(WriteFile(folder + "/b.csv", "x,y\n1,2\n"));
  spec.set_name("houses");
  EXPECT_EQ(*DigestData(spec), before);
}

}  // namespace
}  // namespace tandem
