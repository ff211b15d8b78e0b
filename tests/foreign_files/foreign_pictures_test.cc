// Reads pictures, archives and compressed tables that other software wrote (make_pictures.py), and compares
// them with the numbers of this software.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/test_files.h"
#include "engine/data/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Content(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

class ForeignPicturesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(std::system(
                  "/usr/bin/python3 -c 'import PIL' && convert -version > /dev/null && zstd -V > /dev/null"),
              0)
        << "cannot make the files: python3-pil, imagemagick or zstd is missing; run deploy/setup.sh --test";
    root_ = FreshFolder();
    ASSERT_EQ(
        std::system(absl::StrCat("/usr/bin/python3 tests/foreign_files/make_pictures.py ", root_).c_str()),
        0);
  }
  static void TearDownTestSuite() { fs::remove_all(root_); }

  static v1::DatasetSpec Images(const std::string& train) {
    v1::DatasetSpec spec;
    spec.mutable_image_folder()->set_train(train);
    return spec;
  }

  static inline std::string root_;
};

// Expects that a picture is equal to Pillow's pixels.
void CheckPicture(const fs::path& expected) {
  const std::string file = Content(std::string(absl::StripSuffix(expected.string(), ".expected")));
  const absl::StatusOr<Image> image = DecodeImage(file);
  ASSERT_TRUE(image.ok()) << image.status();
  std::istringstream text(Content(expected));
  int64_t channels = 0, height = 0, width = 0;
  text >> channels >> height >> width;
  text.get();
  const std::string pixels(std::istreambuf_iterator<char>(text), {});
  EXPECT_EQ(image->channels, channels);
  EXPECT_EQ(image->height, height);
  EXPECT_EQ(image->width, width);
  std::string planes(image->pixels.size(), '\0');
  const PictureForm form = {.channels = channels, .height = height, .width = width};
  WriteSample(*image, form, reinterpret_cast<uint8_t*>(planes.data()));
  EXPECT_TRUE(planes == pixels) << "other pixels";
  std::string sample(planes.size(), '\0');
  EXPECT_TRUE(DecodeSample(file, form, reinterpret_cast<uint8_t*>(sample.data())).ok());
  EXPECT_TRUE(sample == pixels) << "other pixels in rows";
}

TEST_F(ForeignPicturesTest, PixelsArePillows) {
  int pictures = 0;
  for (const auto& entry : fs::directory_iterator(root_ + "/pictures")) {
    if (entry.path().extension() != ".expected") continue;
    SCOPED_TRACE(entry.path().filename().string());
    ++pictures;
    CheckPicture(entry.path());
  }
  EXPECT_EQ(pictures, 58);
}

// The same set in a folder and in each archive.
TEST_F(ForeignPicturesTest, StatisticsArePillows) {
  std::istringstream text(Content(root_ + "/sets/expected"));
  const std::vector<double> expected(std::istream_iterator<double>(text), {});
  ASSERT_EQ(expected.size(), 6);
  int sets = 0;
  for (const auto& entry : fs::directory_iterator(root_ + "/sets")) {
    if (entry.path().filename() == "expected") continue;
    SCOPED_TRACE(entry.path().string());
    ++sets;
    const v1::DatasetSpec spec = Images(entry.path().string());
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->train_samples, 6);
    EXPECT_EQ(info->validation_samples, 6);
    EXPECT_THAT(info->class_names, ElementsAre("rose", "tulip"));
    ASSERT_EQ(info->notices.size(), 2);
    EXPECT_EQ(info->notices[0], "image_folder.train: 3 files of other formats skipped: 2 .heic, 1 .txt");
    EXPECT_THAT(info->notices[1], HasSubstr("The test part "));
    EXPECT_THAT(info->notices[1], HasSubstr("/Test is not read"));
    const absl::StatusOr<TrainingCounts> counts = CountTraining(spec, *info);
    ASSERT_TRUE(counts.ok()) << counts.status();
    for (int channel = 0; channel < 3; ++channel) {
      EXPECT_NEAR(counts->statistics.mean[channel], expected[channel], 1e-9);
      EXPECT_NEAR(counts->statistics.standard_deviation[channel], expected[3 + channel], 1e-9);
    }
    EXPECT_EQ(OpenDataset(spec)->train->size(), 6);
  }
  EXPECT_EQ(sets, 7);
}

TEST_F(ForeignPicturesTest, NamesTheFirstBadPictures) {
  const std::vector<FieldViolation> violations =
      GetFieldViolations(DescribeDataset(Images(root_ + "/bad")).status());
  ASSERT_EQ(violations.size(), 21);
  EXPECT_EQ(violations[0].description, "has bad images, 30 of 32; mend or remove them");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(violations[i + 1].field, "image_folder.train");
    EXPECT_THAT(violations[i + 1].description,
                StartsWith(absl::StrCat("rose/bad-", i < 10 ? "0" : "", i, ".jpg is no picture")));
  }
}

TEST_F(ForeignPicturesTest, ReadsCompressedTables) {
  int tables = 0;
  std::vector<float> plain(1000);
  for (int i = 0; i < 1000; ++i) plain[i] = static_cast<float>(i);
  for (const auto& entry : fs::directory_iterator(root_ + "/tables")) {
    SCOPED_TRACE(entry.path().filename().string());
    ++tables;
    v1::DatasetSpec spec;
    spec.mutable_csv()->set_train(entry.path().string());
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(Samples<float>(*opened->train), plain);
  }
  EXPECT_EQ(tables, 9);
}

}  // namespace
}  // namespace tandem
