#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <png.h>

#include "absl/strings/str_cat.h"
#include "engine/base/unique_fd.h"
#include "engine/base/utf8.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/image_file.h"
#include "engine/data/formats/test_files.h"
#include "engine/data/formats/test_jpeg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns a PNG file of interleaved pixels.
std::string Png(int width, int height, const std::vector<uint8_t>& pixels, uint32_t format) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = format;
  std::string file(1 << 18, '\0');
  png_alloc_size_t size = file.size();
  EXPECT_TRUE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr));
  file.resize(size);
  return file;
}

std::string GreyPng(int width, int height, uint8_t value) {
  return Png(width, height, std::vector<uint8_t>(width * height, value), PNG_FORMAT_GRAY);
}

// Puts a chunk with an orientation before or behind a PNG file's pixels.
std::string TurnedPng(std::string file, int orientation, bool behind) {
  constexpr size_t kSignatureAndHeader = 8 + 25, kEnd = 12;
  return file.insert(behind ? file.size() - kEnd : kSignatureAndHeader,
                     PngChunk("eXIf", OrientationExif(orientation)));
}

// Returns a PNG file of more than 64 KB, which libpng cannot pack.
std::string LongPng(int width, int height) {
  std::vector<uint8_t> pixels(width * height);
  uint32_t state = 1;
  for (uint8_t& pixel : pixels) pixel = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  std::string file = Png(width, height, pixels, PNG_FORMAT_GRAY);
  EXPECT_GT(file.size(), 1 << 16);
  return file;
}

// Returns a JPEG file of a single colour.
std::string PlainJpeg(int width, int height, int channels, uint8_t value) {
  return Jpeg({.width = width, .height = height, .channels = channels, .quality = 100},
              [value](int, std::vector<uint8_t>& pixels) { pixels.assign(pixels.size(), value); });
}

std::vector<uint8_t> SampleOf(const Image& image, const PictureForm& form) {
  std::vector<uint8_t> sample(form.channels * form.height * form.width, 99);
  WriteSample(image, form, sample.data());
  return sample;
}

TEST(ImageFileTest, DecodesPngOfEveryKind) {
  absl::StatusOr<Image> image = DecodeImage(Png(2, 1, {1, 2, 3, 4, 5, 6}, PNG_FORMAT_RGB));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->channels, 3);
  EXPECT_EQ(image->height, 1);
  EXPECT_EQ(image->width, 2);
  EXPECT_THAT(image->pixels, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(SampleOf(*image, {.channels = 3, .height = 1, .width = 2}), ElementsAre(1, 4, 2, 5, 3, 6));
  image = DecodeImage(Png(2, 2, {9, 8, 7, 6}, PNG_FORMAT_GRAY));
  EXPECT_EQ(image->channels, 1);
  EXPECT_THAT(image->pixels, ElementsAre(9, 8, 7, 6));
  image = DecodeImage(Png(1, 1, {10, 20, 30, 128}, PNG_FORMAT_RGBA));
  EXPECT_THAT(image->pixels, ElementsAre(10, 20, 30));
  image = DecodeImage(Png(1, 1, {10, 0}, PNG_FORMAT_GA));
  EXPECT_THAT(image->pixels, ElementsAre(10));
}

TEST(ImageFileTest, TurnsPngByExifBeforeOrBehindThePixels) {
  const std::string plain = Png(3, 2, {1, 2, 3, 4, 5, 6}, PNG_FORMAT_GRAY);
  for (const bool behind : {false, true}) {
    for (const auto& [orientation, pixels] :
         std::vector<std::pair<int, std::vector<uint8_t>>>{{1, {1, 2, 3, 4, 5, 6}},
                                                           {3, {6, 5, 4, 3, 2, 1}},
                                                           {6, {4, 1, 5, 2, 6, 3}},
                                                           {8, {3, 6, 2, 5, 1, 4}}}) {
      SCOPED_TRACE(testing::Message() << "orientation " << orientation << ", behind " << behind);
      const std::string file = TurnedPng(plain, orientation, behind);
      const absl::StatusOr<Image> image = DecodeImage(file), header = ReadImageHeader(file);
      ASSERT_TRUE(image.ok() && header.ok()) << image.status() << header.status();
      EXPECT_EQ(image->height, orientation < 5 ? 2 : 3);
      EXPECT_EQ(image->width, orientation < 5 ? 3 : 2);
      EXPECT_EQ(image->pixels, pixels);
      EXPECT_EQ(header->height, image->height);
      EXPECT_EQ(header->width, image->width);
      EXPECT_FALSE(header->may_turn);
    }
    // A damaged chunk is skipped.
    std::string damaged = TurnedPng(plain, 6, behind);
    damaged[damaged.find("eXIf") + 4 + 18] = 8;
    EXPECT_EQ(DecodeImage(damaged)->width, 3);
    EXPECT_EQ(ReadImageHeader(damaged)->width, 3);
  }
}

TEST(ImageFileTest, ABeginningOfAPngFileMayTurn) {
  const std::string plain = LongPng(300, 250);
  const auto begin = [](const std::string& file) { return *ReadImageHeader(file.substr(0, 1 << 12)); };
  EXPECT_TRUE(begin(plain).may_turn);
  EXPECT_TRUE(begin(TurnedPng(plain, 6, true)).may_turn);
  EXPECT_FALSE(begin(TurnedPng(plain, 6, false)).may_turn);
  EXPECT_EQ(begin(TurnedPng(plain, 6, false)).height, 300);
  EXPECT_FALSE(begin(LongPng(300, 300)).may_turn) << "a square";
  EXPECT_FALSE(ReadImageHeader(plain)->may_turn);
}

TEST(ImageFileTest, DecodesJpeg) {
  absl::StatusOr<Image> image = DecodeImage(PlainJpeg(9, 5, 3, 77));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(image->channels, 3);
  EXPECT_EQ(image->height, 5);
  EXPECT_EQ(image->width, 9);
  for (const uint8_t pixel : image->pixels) EXPECT_NEAR(pixel, 77, 2);
  image = DecodeImage(PlainJpeg(9, 5, 1, 77));
  EXPECT_EQ(image->channels, 1);
  EXPECT_EQ(image->pixels.size(), 45);
  EXPECT_EQ(ReadImageHeader(PlainJpeg(9, 5, 1, 77))->width, 9);
}

TEST(ImageFileTest, RefusesWhatCannotBeDecoded) {
  const auto message = [](const std::string& file) {
    return std::string(DecodeImage(file).status().message());
  };
  EXPECT_THAT(message("some text"), HasSubstr("is no picture that can be read"));
  EXPECT_THAT(message(""), HasSubstr("is empty"));
  EXPECT_THAT(message("....ftypheic"), HasSubstr("is a HEIC file"));
  EXPECT_THAT(message("GIF89a"), HasSubstr("cannot be decoded as GIF"));
  const std::string png = GreyPng(50, 50, 3), jpeg = PlainJpeg(64, 64, 3, 9);
  for (const double part : {0.1, 0.5, 0.9}) {
    EXPECT_THAT(message(png.substr(0, static_cast<size_t>(png.size() * part))),
                HasSubstr("cannot be decoded as PNG"));
    EXPECT_THAT(message(jpeg.substr(0, static_cast<size_t>(jpeg.size() * part))),
                HasSubstr("cannot be decoded as JPEG"));
  }
  std::string damaged = png;
  damaged[png.size() / 2] ^= 0x55;
  EXPECT_THAT(message(damaged), HasSubstr("cannot be decoded as PNG"));
  // A header with 32896 x 32896 pixels takes no memory.
  std::string huge = jpeg;
  const size_t frame = huge.find("\xFF\xC0");
  for (int i = 5; i < 9; ++i) huge[frame + i] = '\x80';
  EXPECT_THAT(message(huge), HasSubstr("more than can be read"));
}

TEST(ImageFileTest, ConvertsAndResizes) {
  const Image grey = {.channels = 1, .height = 2, .width = 4, .pixels = {0, 10, 20, 30, 40, 50, 60, 70}};
  const auto resized = [](const Image& image, int64_t height, int64_t width, v1::ImageResize resize) {
    return SampleOf(image, {.channels = 1, .height = height, .width = width, .resize = resize});
  };
  EXPECT_THAT(resized(grey, 2, 4, v1::IMAGE_RESIZE_CROP), ElementsAreArray(grey.pixels));
  EXPECT_THAT(resized(grey, 1, 2, v1::IMAGE_RESIZE_STRETCH), ElementsAre(25, 45));
  EXPECT_THAT(resized(grey, 2, 2, v1::IMAGE_RESIZE_CROP), ElementsAre(10, 20, 50, 60));
  EXPECT_THAT(resized(grey, 2, 2, v1::IMAGE_RESIZE_PAD), ElementsAre(25, 45, 0, 0));
  const Image row = {.channels = 1, .height = 1, .width = 2, .pixels = {0, 100}};
  EXPECT_THAT(resized(row, 1, 4, v1::IMAGE_RESIZE_STRETCH), ElementsAre(0, 25, 75, 100));
  const PictureForm colours = {.channels = 3, .height = 1, .width = 2};
  EXPECT_THAT(SampleOf(row, colours), ElementsAre(0, 100, 0, 100, 0, 100));
  const Image colour = {.channels = 3, .height = 1, .width = 2, .pixels = {100, 200, 50, 7, 7, 7}};
  EXPECT_THAT(SampleOf(colour, {.channels = 1, .height = 1, .width = 2}), ElementsAre(153, 7));
  // The black around the image, in all channels.
  EXPECT_THAT(SampleOf(row, {.channels = 3, .height = 2, .width = 2, .resize = v1::IMAGE_RESIZE_PAD}),
              ElementsAre(0, 100, 0, 0, 0, 100, 0, 0, 0, 100, 0, 0));
}

// Returns the largest memory of this process so far.
int64_t PeakBytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

TEST(ImageFileTest, PassesOverPackedTexts) {
  std::string packed(64 << 10, '\0');
  uLongf size = packed.size();
  const std::string text(7 << 20, 'a');
  ASSERT_EQ(::compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                       reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  packed.resize(size);
  const std::string chunk = PngChunk("zTXt", std::string("Comment\0\0", 9) + packed);
  std::string texts;
  for (int i = 0; i < 60; ++i) texts += chunk;
  std::string file = GreyPng(3, 2, 7);
  // After the signature and the header.
  file.insert(8 + 25, texts);
  const int64_t before = PeakBytes();
  EXPECT_EQ(ReadImageHeader(file)->width, 3);
  const absl::StatusOr<Image> image = DecodeImage(file);
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_THAT(image->pixels, ElementsAre(7, 7, 7, 7, 7, 7));
  EXPECT_LT(PeakBytes() - before, 100 << 20);
}

TEST(ImageFileTest, CutsTheMiddleOutOfALongImage) {
  constexpr int64_t kWidth = 1 << 20;
  Image line = {.channels = 1, .height = 1, .width = kWidth, .pixels = std::vector<uint8_t>(kWidth)};
  line.pixels[kWidth / 2] = line.pixels[kWidth / 2 - 1] = 200;
  const int64_t before = PeakBytes();
  const std::vector<uint8_t> cut =
      SampleOf(line, {.channels = 1, .height = 1000, .width = 2, .resize = v1::IMAGE_RESIZE_CROP});
  EXPECT_THAT(cut, Each(200));
  // The other side of a tall image takes no memory either.
  EXPECT_THAT(SampleOf(line, {.channels = 1, .height = 2, .width = 2, .resize = v1::IMAGE_RESIZE_PAD}),
              Each(0));
  EXPECT_LT(PeakBytes() - before, 100 << 20);
}

class ImageFolderTest : public ::testing::Test {
 protected:
  ImageFolderTest() {
    spec_.mutable_image_folder()->set_train(folder_ + "/train");
    Add("train/cat/b.png", GreyPng(3, 2, 2));
    Add("train/cat/a.PNG", GreyPng(3, 2, 1));
    Add("train/bird/deep/c.png", GreyPng(3, 2, 3));
    Add("train/bird/notes.txt", "no image");
  }
  void Add(const std::string& name, const std::string& content) {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    WriteFile(path.string(), content);
  }
  const std::string folder_ = FreshFolder();
  v1::DatasetSpec spec_;
};

TEST_F(ImageFolderTest, FoldersAreClassesInTheOrderOfTheirNames) {
  Add("validation/cat/z.jpg", PlainJpeg(3, 2, 1, 9));
  spec_.mutable_image_folder()->set_validation(folder_ + "/validation");
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.shape, Shape({1, 2, 3}));
  EXPECT_THAT(opened->info.class_names, ElementsAre("bird", "cat"));
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(0, 1, 1));
  EXPECT_THAT(Samples<uint8_t>(*opened->train),
              ElementsAre(3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(Targets<int32_t>(*opened->validation), ElementsAre(1));
  EXPECT_EQ(DescribeDataset(spec_)->train_samples, 3);
}

TEST_F(ImageFolderTest, MixedSizesNeedASize) {
  Add("train/cat/d.png", GreyPng(4, 2, 2));
  ExpectViolation(spec_, "image_folder.train", "/train/cat/d.png has 2 x 4 pixels (height x width), but ");
  spec_.mutable_image_folder()->set_height(2);
  ExpectViolation(spec_, "image_folder.width", "is missing");
  spec_.mutable_image_folder()->set_width(2);
  spec_.mutable_image_folder()->set_channels(3);
  EXPECT_EQ(OpenDataset(spec_)->info.shape, Shape({3, 2, 2}));
}

// The header is first searched in the beginning of the file.
TEST_F(ImageFolderTest, ALongPngIsTurnedByExifBehindThePixels) {
  const std::string folder = FreshFolder();
  std::filesystem::create_directories(folder + "/cat");
  WriteFile(folder + "/cat/a.png", TurnedPng(LongPng(300, 250), 6, /*behind=*/true));
  spec_.mutable_image_folder()->set_train(folder);
  const absl::StatusOr<DatasetInfo> described = DescribeDataset(spec_);
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->shape, Shape({1, 300, 250}));
}

TEST_F(ImageFolderTest, NamesTheImageAtFault) {
  const std::string png = GreyPng(3, 2, 4);
  Add("train/cat/e.png", png.substr(0, png.size() - 6));
  ExpectViolation(spec_, "image_folder.train", "/train/cat/e.png cannot be decoded as PNG: ");
  Add("train/cat/e.png", "text");
  ExpectViolation(spec_, "image_folder.train", "/train/cat/e.png is no picture that can be read");
  Add("train/cat/e.png", "");
  ExpectViolation(spec_, "image_folder.train", "/train/cat/e.png is empty");
}

TEST_F(ImageFolderTest, NamesTwentyBadImagesAtOnce) {
  for (int i = 10; i < 33; ++i) Add("train/cat/bad" + std::to_string(i) + ".png", "text");
  const std::string png = GreyPng(3, 2, 4);
  Add("validation/cat/cut.png", png.substr(0, png.size() - 6));
  spec_.mutable_image_folder()->set_validation(folder_ + "/validation");
  const std::vector<FieldViolation> found = GetFieldViolations(DescribeDataset(spec_).status());
  ASSERT_EQ(found.size(), 22u);
  EXPECT_EQ(found[0].description, "has bad images, 23 of 26; mend or remove them");
  EXPECT_EQ(found[1].description,
            "cat/bad10.png is no picture that can be read: JPEG, PNG, WebP, BMP, TIFF or GIF");
  EXPECT_THAT(found[20].description, StartsWith("cat/bad29.png is no picture"));
  EXPECT_EQ(found[21].field, "image_folder.validation");
  EXPECT_EQ(found[21].description, "has bad images, 1 of 1; mend or remove them");

  for (int i = 10; i < 33; ++i) {
    std::filesystem::remove(folder_ + "/train/cat/bad" + std::to_string(i) + ".png");
  }
  ExpectViolation(spec_, "image_folder.validation", "/validation/cat/cut.png cannot be decoded as PNG: ");
}

TEST_F(ImageFolderTest, ShortensLongNamesOfBadImages) {
  const std::string shared =
      "DSC_holiday_in_the_mountains_of_\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9_and_by_the_sea_";
  for (int i = 10; i < 30; ++i) Add(absl::StrCat("train/cat/", shared, i, ".png"), "text");
  std::vector<FieldViolation> found = GetFieldViolations(DescribeDataset(spec_).status());
  ASSERT_EQ(found.size(), 20u);
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(found[i].description, StartsWith("cat/DSC_holiday_"));
    EXPECT_THAT(found[i].description,
                HasSubstr(absl::StrCat("_and_by_the_sea_", i + 10, ".png is no picture that can be read")));
    EXPECT_LE(found[i].description.size(), 88u);
    EXPECT_TRUE(IsUtf8(found[i].description)) << found[i].description;
  }
  for (int i = 12; i < 30; ++i) {
    std::filesystem::remove(absl::StrCat(folder_, "/train/cat/", shared, i, ".png"));
  }
  found = GetFieldViolations(DescribeDataset(spec_).status());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[1].description, AllOf(HasSubstr(shared), HasSubstr("TIFF or GIF"))) << "there is room";
}

TEST_F(ImageFolderTest, ReportsSkippedFiles) {
  Add("train/cat/x.heic", "");
  Add("train/cat/deep/y.HEIC", "");
  Add("train/readme.txt", "");
  Add("train/loose.png", "");
  Add("train/@eaDir/cat/thumbnail.png", "");
  Add("train/cat/.hidden/z.png", "");
  Add("train/cat/._b.png", "");
  const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec_);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->train_samples, 3);
  EXPECT_THAT(info->notices,
              ElementsAre("image_folder.train: 4 files of other formats skipped: 2 .heic, 2 .txt",
                          "image_folder.train: 1 image beside the folders of classes skipped"));
}

TEST_F(ImageFolderTest, RefusesFoldersWithoutClassesOrImages) {
  std::filesystem::create_directories(folder_ + "/train/empty");
  ExpectViolation(spec_, "image_folder.train", "/train/empty has no image");
  Add("train/empty/x.png", GreyPng(3, 2, 1));
  Add("train/\xFF/x.png", GreyPng(3, 2, 1));
  ExpectViolation(spec_, "class_names", "have '\\xff', which is not UTF-8");
  std::filesystem::remove_all(folder_ + "/train/\xFF");
  Add("validation/fish/x.png", GreyPng(3, 2, 1));
  spec_.mutable_image_folder()->set_validation(folder_ + "/validation");
  ExpectViolation(spec_, "image_folder.validation",
                  "has a class \"fish\", which the training images do not have; they have 3 classes");
  spec_.mutable_image_folder()->clear_validation();
  spec_.mutable_image_folder()->set_train(folder_ + "/train/cat");
  ExpectViolation(spec_, "image_folder.train", "has no subfolders");
  Add("train/cat/set-0.tar", "x");
  ExpectViolation(spec_, "image_folder.train", "if it has shards of pictures, give webdataset");
  spec_.mutable_image_folder()->set_train(folder_ + "/none");
  ExpectViolation(spec_, "image_folder.train", "cannot be read");
}

TEST_F(ImageFolderTest, NamesAFileWhoseSizeCannotBeRead) {
  // The folder's path is short enough for the system. The file's path is too long.
  std::string folder = folder_ + "/train/cat";
  while (folder.size() < 3900) folder += "/" + std::string(100, 'f');
  std::filesystem::create_directories(folder);
  const std::string name = std::string(200, 'p') + ".png";
  const UniqueFd parent(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(parent.valid());
  ASSERT_TRUE(UniqueFd(openat(parent.get(), name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).valid());
  ExpectViolation(spec_, "image_folder.train",
                  name + " cannot be read: File name too long; mend or remove the file");
  EXPECT_EQ(unlinkat(parent.get(), name.c_str(), 0), 0);
}

// Archives with a folder around the classes, with parts, and without.
TEST(ImageArchiveTest, ReadsArchivesLikeFolders) {
  const std::string folder = FreshFolder();
  const auto check = [&](const std::string& name, const std::string& archive, int64_t validation) {
    SCOPED_TRACE(name);
    v1::DatasetSpec spec;
    spec.mutable_image_folder()->set_train(WriteFile(folder + "/" + name, archive));
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT(opened->info.class_names, ElementsAre("cat", "dog"));
    EXPECT_THAT(Samples<uint8_t>(*opened->train), ElementsAre(5, 5, 6, 6));
    EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(0, 1));
    EXPECT_EQ(opened->info.validation_samples, validation);
    EXPECT_EQ(DescribeDataset(spec)->train_samples, 2);
  };
  const std::string five = GreyPng(2, 1, 5), six = GreyPng(2, 1, 6);
  const std::vector<std::pair<std::string, std::string>> plain = {
      {"dog/1.png", six}, {"cat/1.png", five}, {"cat/.hidden.png", "x"}};
  check("plain.zip", Zip(plain, false), 0);
  check("plain.tar", Tar(plain), 0);
  check("plain.tar.zst", Zstded(Tar(plain)), 0);
  check("dots.tar.bz2", Bzipped(Tar({{"./cat/1.png", five}, {"./dog//1.png", six}})), 0);
  // Of two members with the same path, the later counts.
  check("twice.tgz", Gzipped(Tar({{"cat/1.png", six}, {"dog/1.png", six}, {"cat/1.png", five}})), 0);
  check("windows.zip", Zip({{"cat\\1.png", five}, {"dog\\1.png", six}}, false), 0);
  const std::vector<std::pair<std::string, std::string>> parts = {
      {"pets/README", "about"},     {"pets/train/cat/1.png", five}, {"pets/train/dog/a/1.png", six},
      {"pets/val/dog/1.png", five}, {"pets/test/dog/1.png", six},
  };
  check("parts.zip", Zip(parts, true), 1);
  check("parts.tar.xz", Xzipped(Tar(parts)), 1);
}

TEST(ImageArchiveTest, RefusesDamagedArchives) {
  const std::string folder = FreshFolder();
  v1::DatasetSpec spec;
  const auto expect = [&](const std::string& archive, const std::string& fault) {
    spec.mutable_image_folder()->set_train(WriteFile(folder + "/pets", archive));
    ExpectViolation(spec, "image_folder.train", fault);
  };
  const std::string png = GreyPng(2, 1, 5);
  const std::vector<std::pair<std::string, std::string>> members = {{"cat/1.png", png},
                                                                    {"dog/1.png", "no picture"}};
  expect(Tar(members), "pets/dog/1.png is no picture that can be read");
  expect(Zip(members, false), "pets/dog/1.png is no picture that can be read");
  expect("some text", "pets is truncated: it ends within a tar header");
  expect(std::string(600, 'x'), "pets is no tar archive, or is damaged");
  expect(Tar(members).substr(0, 1100), "pets is truncated");
  expect(Zip(members, false).substr(0, 100), "pets is no zip archive, or is truncated");
  expect(Tar({{"1.png", png}}), "pets has no subfolders");
  expect(Tar({{"1.png", png}, {"1.cls", "0"}}), "give webdataset in place of image_folder");
  std::string damaged = Zip({{"cat/1.png", png}, {"dog/1.png", png}}, false);
  damaged[damaged.find("dog/1.png") + 12] ^= 0x55;
  expect(damaged, "pets is damaged: ");
}

// Some archivers write the number of files modulo 65,536. The names have more than 16 MiB.
TEST(ImageArchiveTest, ReadsZipArchivesOfManyFiles) {
  std::vector<std::pair<std::string, std::string>> members(65537, {"cat/" + std::string(300, 'n'), ""});
  members[0] = {"cat/1.png", GreyPng(2, 1, 5)};
  members.back() = {"dog/1.png", GreyPng(2, 1, 6)};
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(WriteFile(FreshFolder() + "/pets", Zip(members, false)));
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Samples<uint8_t>(*opened->train), ElementsAre(5, 5, 6, 6));
}

// Training on a part of the pictures is worse than an error.
TEST(ImageArchiveTest, RefusesArchivesThatHideMembers) {
  const std::string folder = FreshFolder();
  v1::DatasetSpec spec;
  const auto expect = [&](const std::string& archive, const std::string& fault) {
    spec.mutable_image_folder()->set_train(WriteFile(folder + "/pets", archive));
    ExpectViolation(spec, "image_folder.train", fault);
  };
  const std::string png = GreyPng(2, 1, 5);
  const std::string whole = Tar({{"cat/1.png", png}, {"dog/1.png", png}});
  const std::string open = whole.substr(0, whole.size() - 1024);
  expect(open, "pets is truncated: the block that ends a tar archive is missing");
  expect(Gzipped(open), "pets is truncated: the block that ends a tar archive is missing");
  expect(whole + whole, "pets has data behind the block that ends a tar archive");
  for (const char link : {'1', '2'}) {
    expect(open + Tar({{"./dog/2.png", ""}}, link),
           "pets has the link ./dog/2.png; make the archive again by tar");
    expect(Xzipped(open + Tar({{"fox", ""}}, link)), "pets has the link fox; make the archive again by tar");
  }
  expect(open + Tar({{"dog/2.png", png}}, 'S'), "pets has the sparse file dog/2.png; make the archive again");
  // The tar of macOS writes files with holes so by default.
  const std::string pax = Tar({{"pax", "22 GNU.sparse.major=1\n"}}, 'x');
  expect(open + pax.substr(0, pax.size() - 1024) + Tar({{"dog/2.png", png}}),
         "pets has the sparse file dog/2.png; make the archive again");
  std::string zip = Zip({{"cat/1.png", png}, {"dog/1.png", png}, {"fox", "cat"}}, false);
  std::string fewer = zip;
  fewer[fewer.rfind("PK\x05\x06") + 10] = 2;
  expect(fewer, "pets is damaged: its directory has 3 files, but states 2");
  const size_t record = zip.find("PK\x01\x02", zip.rfind("dog/1.png"));
  zip[record + 5] = 3;
  zip[record + 41] = static_cast<char>(0xA0);
  expect(zip, "pets has the link fox; make the archive again without links");

  spec.mutable_image_folder()->set_train(
      WriteFile(folder + "/pets", Tar({{"cat/.x.png", ""}}, '2').substr(0, 512) + whole));
  EXPECT_TRUE(OpenDataset(spec).ok());
  // tar --label writes no size.
  std::string label = Tar({{"label", ""}}, 'V').substr(0, 512);
  std::fill(label.begin() + 124, label.begin() + 136, '\0');
  unsigned sum = 0;
  for (size_t i = 0; i < label.size(); ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<uint8_t>(label[i]);
  std::snprintf(&label[148], 8, "%06o", sum);
  spec.mutable_image_folder()->set_train(WriteFile(folder + "/pets", label + whole));
  EXPECT_TRUE(OpenDataset(spec).ok()) << OpenDataset(spec).status();
}

TEST(ImageFolderClassesTest, ClassesAreMatchedToTheModelsByName) {
  const std::string folder = FreshFolder();
  for (const char* name : {"train/cat", "train/dog", "validation/bird"}) {
    std::filesystem::create_directories(folder + "/" + name);
    WriteFile(folder + "/" + name + "/1.png", GreyPng(2, 2, 9));
  }
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder + "/train");
  spec.mutable_image_folder()->set_validation(folder + "/validation");
  const DataNames model = {.classes = {"bird", "cat", "dog"}};
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec, &model);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(1, 2));
  EXPECT_THAT(Targets<int32_t>(*opened->validation), ElementsAre(0));
  EXPECT_THAT(opened->info.class_names, ElementsAre("bird", "cat", "dog"));
  EXPECT_THAT(opened->info.class_labels, ElementsAre(1, 2, 0)) << "the training folders come first";

  std::filesystem::create_directories(folder + "/train/elk");
  WriteFile(folder + "/train/elk/1.png", GreyPng(2, 2, 9));
  const std::vector<FieldViolation> found = GetFieldViolations(DescribeDataset(spec, &model).status());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].field, "image_folder.train");
  EXPECT_THAT(found[0].description,
              HasSubstr("has a class 'elk', which the model does not know; it knows 'bird', 'cat', 'dog'"));
}

// Folders of digits are sorted as text, the labels of a model as numbers.
TEST(ImageFolderClassesTest, NumbersAreTheLabelsOfAModelWithoutNames) {
  const std::string folder = FreshFolder();
  for (const char* name : {"1", "10", "2"}) {
    std::filesystem::create_directories(folder + "/" + name);
    WriteFile(folder + "/" + name + "/1.png", GreyPng(2, 2, 9));
  }
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder);
  const DataNames model;
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec, &model);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(1, 10, 2));
  EXPECT_EQ(opened->info.classes, 11);
  EXPECT_THAT(opened->info.class_labels, ElementsAre(1, 10, 2, 0, 3, 4, 5, 6, 7, 8, 9));
}

// Many archives unpack to "flowers/flowers/daisy".
TEST(ImageFolderClassesTest, ADoubledFolderHasAMend) {
  const std::string folder = FreshFolder() + "/flowers";
  for (const char* name : {"daisy", "rose"}) {
    std::filesystem::create_directories(folder + "/flowers/" + name);
    WriteFile(folder + "/flowers/" + name + "/1.png", GreyPng(2, 2, 9));
  }
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder);
  const DatasetInfo info = *DescribeDataset(spec);
  EXPECT_EQ(info.classes, 1);
  EXPECT_TRUE(info.one_label);
  EXPECT_THAT(info.one_class_mend, HasSubstr("give image_folder.train: " + folder + "/flowers"));
  spec.mutable_image_folder()->set_train(folder + "/flowers");
  EXPECT_EQ(DescribeDataset(spec)->classes, 2);
}

TEST(ImageFolderClassesTest, PartsOfADataSetAreNoClasses) {
  const std::string folder = FreshFolder();
  for (const char* name : {"train/daisy", "train/rose", "Test/daisy"}) {
    std::filesystem::create_directories(folder + "/" + name);
    WriteFile(folder + "/" + name + "/1.png", GreyPng(2, 2, 9));
  }
  v1::DatasetSpec spec;
  spec.mutable_image_folder()->set_train(folder);
  DatasetInfo info = *DescribeDataset(spec);
  EXPECT_THAT(info.class_names, ElementsAre("daisy", "rose"));
  EXPECT_EQ(info.validation_samples, 0);
  EXPECT_THAT(info.notices, ElementsAre(HasSubstr("The test part " + folder + "/Test is not read")));
  std::filesystem::create_directories(folder + "/valid/daisy");
  WriteFile(folder + "/valid/daisy/1.png", GreyPng(2, 2, 9));
  EXPECT_EQ(DescribeDataset(spec)->validation_samples, 1);
  spec.mutable_image_folder()->set_train(folder + "/train");
  spec.mutable_image_folder()->set_validation(folder + "/Test");
  info = *DescribeDataset(spec);
  EXPECT_EQ(info.validation_samples, 1);
  EXPECT_THAT(info.notices, ElementsAre());
  std::filesystem::remove_all(folder + "/train");
  spec.mutable_image_folder()->set_train(folder);
  spec.mutable_image_folder()->clear_validation();
  ExpectViolation(spec, "image_folder.train",
                  "has the subfolders 'Test', 'valid', which are parts of a data set");
}

}  // namespace
}  // namespace tandem
