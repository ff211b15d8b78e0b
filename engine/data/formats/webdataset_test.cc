#include <png.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/data/data_digest.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "engine/data/formats/test_jpeg.h"
#include "engine/data/statistics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Members = std::vector<std::pair<std::string, std::string>>;

// Returns a PNG file of one value, grey or coloured.
std::string Png(int width, int height, uint8_t value, bool grey = true) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = height;
  image.format = grey ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::vector<uint8_t> pixels(width * height * 3, value);
  if (!grey) pixels[0] ^= 1;
  std::string file(1 << 16, '\0');
  png_alloc_size_t size = file.size();
  EXPECT_TRUE(png_image_write_to_memory(&image, file.data(), &size, 0, pixels.data(), 0, nullptr));
  file.resize(size);
  return file;
}

class WebDatasetTest : public ::testing::Test {
 protected:
  // Writes a shard. Sample i of it has the value `first` + i, and its label is the value modulo 3.
  void Shard(const std::string& name, int first, int samples) {
    Members members;
    for (int i = first; i < first + samples; ++i) {
      members.emplace_back(absl::StrCat("a.b/", i, ".png"), Png(3, 2, static_cast<uint8_t>(i)));
      members.emplace_back(absl::StrCat("a.b/", i, ".json"), "{}");
      members.emplace_back(absl::StrCat("a.b/", i, ".cls"), absl::StrCat(i % 3, "\n"));
    }
    WriteFile(folder_ + "/" + name, Tar(members));
  }
  v1::DatasetSpec Spec(const std::string& path) const {
    v1::DatasetSpec spec;
    spec.mutable_webdataset()->set_train(folder_ + "/" + path);
    return spec;
  }
  // Expects that a shard of these members is refused.
  void ExpectBad(const Members& members, const std::string& part) {
    WriteFile(folder_ + "/bad.tar", Tar(members));
    ExpectViolation(Spec("bad.tar"), "webdataset.train", part);
  }

  const std::string folder_ = FreshFolder();
};

std::vector<int> Values(const Dataset& dataset) {
  std::vector<int> values;
  const std::vector<uint8_t> samples = Samples<uint8_t>(dataset);
  for (size_t i = 0; i < samples.size(); i += dataset.sample_bytes()) values.push_back(samples[i]);
  return values;
}

TEST_F(WebDatasetTest, ReadsTheSamplesOfAllShardsInOrder) {
  Shard("t-00.tar", 0, 3);
  Shard("t-01.tar", 3, 1);
  Shard("t-02.tar", 4, 2);
  Shard("v.tar", 7, 2);
  for (const std::string path : {"t-{00..02}.tar", "t-{00,01,02}.tar"}) {
    v1::DatasetSpec spec = Spec(path);
    spec.mutable_webdataset()->set_validation(folder_ + "/v.tar");
    const absl::StatusOr<DatasetInfo> described = DescribeDataset(spec);
    ASSERT_TRUE(described.ok()) << described.status();
    EXPECT_EQ(described->shape, Shape({1, 2, 3}));
    EXPECT_EQ(described->classes, 3);
    EXPECT_EQ(described->train_samples, 6);
    EXPECT_EQ(described->validation_samples, 2);
    EXPECT_TRUE(described->stays_in_files);
    EXPECT_THAT(described->shard_ends, ElementsAre());
    EXPECT_EQ(described->shuffle_buffer, 0);
    ASSERT_EQ(described->notices.size(), 2);
    EXPECT_EQ(described->notices[0],
              "webdataset.train: skipped 6 members that are neither picture nor label: 6 .json");
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_THAT(opened->info.shard_ends, ElementsAre(3, 4, 6));
    EXPECT_EQ(opened->info.shuffle_buffer, 10000);
    EXPECT_TRUE(opened->info.stays_in_files);
    EXPECT_THAT(Values(*opened->train), ElementsAre(0, 1, 2, 3, 4, 5));
    EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(0, 1, 2, 0, 1, 2));
    EXPECT_THAT(Values(*opened->validation), ElementsAre(7, 8));
    EXPECT_THAT(*CountClasses(*opened->train, opened->info), ElementsAre(2, 2, 2));
    // The samples stay in their files.
    EXPECT_LT(opened->info.memory_bytes, 2000);
  }
  const absl::StatusOr<OpenedDataset> all = OpenDataset(Spec(""));
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_THAT(Values(*all->train), ElementsAre(0, 1, 2, 3, 4, 5, 7, 8));
}

TEST_F(WebDatasetTest, LimitsAndSplitsKeepTheShards) {
  Shard("0.tar", 0, 4);
  Shard("1.tar", 4, 4);
  Shard("2.tar", 8, 4);
  v1::DatasetSpec spec = Spec("{0..2}.tar");
  spec.set_train_limit(6);
  absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(opened->info.shard_ends, ElementsAre(4, 6));
  EXPECT_THAT(Values(*opened->train), ElementsAre(0, 1, 2, 3, 4, 5));
  spec.set_train_limit(4);
  EXPECT_THAT(OpenDataset(spec)->info.shard_ends, ElementsAre(4));

  spec.clear_train_limit();
  spec.mutable_validation_split()->set_fraction(0.5);
  opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const std::vector<int> values = Values(*opened->train);
  ASSERT_EQ(values.size(), 6);
  EXPECT_EQ(opened->info.shard_ends.back(), 6);
  int64_t begin = 0;
  for (const int64_t end : opened->info.shard_ends) {
    ASSERT_GT(end, begin);
    for (int64_t i = begin; i < end; ++i) EXPECT_EQ(values[i] / 4, values[begin] / 4);
    begin = end;
  }
}

TEST_F(WebDatasetTest, PicturesAreBroughtToTheGivenForm) {
  WriteFile(folder_ + "/0.tar",
            Tar({{"x.png", Png(3, 2, 5)}, {"x.cls", "0"}, {"y.cls", "1"}, {"y.PNG", Png(6, 4, 9)}}));
  ExpectViolation(Spec("0.tar"), "webdataset.train", "0.tar/y.PNG has 4 x 6 pixels (height x width), but");
  v1::DatasetSpec spec = Spec("0.tar");
  spec.mutable_webdataset()->set_height(4);
  spec.mutable_webdataset()->set_width(2);
  spec.mutable_webdataset()->set_channels(3);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.shape, Shape({3, 4, 2}));
  EXPECT_THAT(Values(*opened->train), ElementsAre(5, 9));
  WriteFile(folder_ + "/0.tar",
            Tar({{"x.png", Png(3, 2, 5)}, {"x.cls", "0"}, {"y.cls", "1"}, {"y.png", Png(3, 2, 9, false)}}));
  EXPECT_EQ(DescribeDataset(Spec("0.tar"))->shape, Shape({3, 2, 3}));
}

// The header is first searched in the beginning of the picture.
TEST_F(WebDatasetTest, ALongPngIsTurnedByExifBehindThePixels) {
  std::string png = Png(6, 4, 9);
  // A long comment, then the orientation, before the last chunk.
  png.insert(png.size() - 12, PngChunk("tEXt", std::string("Comment\0", 8) + std::string(1 << 17, 'a')) +
                                  PngChunk("eXIf", OrientationExif(6)));
  // So many bytes of pictures are not decoded before the training.
  Members members;
  for (int i = 0; i < 260; ++i) {
    members.emplace_back(absl::StrCat(i, ".png"), png);
    members.emplace_back(absl::StrCat(i, ".cls"), "0");
  }
  WriteFile(folder_ + "/t.tar", Tar(members));
  const absl::StatusOr<DatasetInfo> described = DescribeDataset(Spec("t.tar"));
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->shape, Shape({1, 6, 4}));
}

TEST_F(WebDatasetTest, BadShardsAreRefusedByName) {
  const std::string png = Png(3, 2, 1);
  ExpectBad({{"x.png", png}}, "bad.tar has the sample 'x' without a label; a picture and its .cls member");
  ExpectBad({{"x.cls", "1"}, {"y.png", png}, {"y.cls", "1"}}, "has the sample 'x' without a picture");
  ExpectBad({{"x.png", png}, {"y.png", png}, {"x.cls", "1"}, {"y.cls", "1"}}, "sample 'x' without a label");
  ExpectBad({{"x.png", png}, {"x.jpg", png}, {"x.cls", "1"}}, "has two pictures for the sample 'x'");
  ExpectBad({{"x.png", png}, {"x.cls", "1"}, {"x.cls", "1"}}, "has two labels for the sample 'x'");
  ExpectBad({{"x.png", png}, {"x.cls", "cat"}}, "has the label 'cat' in 'x.cls'");
  ExpectBad({{"x.png", png}, {"x.cls", "-1"}}, "has the label '-1'");
  ExpectBad({{"x.png", png}, {"x.cls", std::string(65, '1')}}, "has the label");
  ExpectBad({{"x.seg.png", png}, {".hidden.png", png}, {"a/.b.cls", "1"}, {"README", "x"}}, "has no samples");
  ExpectBad({{"x.png", "no picture"}, {"x.cls", "1"}}, "bad.tar/x.png is no picture");
  ExpectBad({}, "bad.tar has no samples");
  // A name of any bytes, such as in Latin-1.
  ExpectBad({{"caf\xE9.png", png}}, "has the sample 'caf\\xe9' without a label");

  const std::string whole = Tar({{"x.png", png}, {"x.cls", "1"}});
  const auto expect = [&](const std::string& content, const std::string& part) {
    WriteFile(folder_ + "/bad.tar", content);
    ExpectViolation(Spec("bad.tar"), "webdataset.train", part);
  };
  expect("", "is empty");
  expect(Gzipped(whole), "is compressed, but a shard must be a plain tar archive");
  expect(whole.substr(0, whole.size() - 1024), "is truncated: the block that ends a tar archive is missing");
  expect(whole.substr(0, 700), "is truncated");
  expect(whole + whole, "has data behind the block that ends a tar archive");
  expect("no tar archive" + std::string(600, 'x'), "is no tar archive");
  std::string damaged = whole;
  damaged[1024] ^= 1;
  expect(damaged, "damaged");
  ExpectViolation(Spec("none.tar"), "webdataset.train", "none.tar does not exist");
  ExpectViolation(Spec("{0..1"), "webdataset.train", "'{' without a '}'");
  ExpectViolation(Spec("{0..100000}.tar"), "webdataset.train", "more than 100000 shards");
}

TEST_F(WebDatasetTest, TheFirstBadPicturesAreNamedInOneAnswer) {
  // Of the 15 pictures of a shard, 12 are bad.
  Members members;
  for (int i = 10; i < 25; ++i) {
    members.emplace_back(absl::StrCat(i, ".png"), i % 5 == 0 ? Png(3, 2, 1) : "no picture");
    members.emplace_back(absl::StrCat(i, ".cls"), "0");
  }
  for (const char* name : {"/a.tar", "/b.tar"}) WriteFile(folder_ + name, Tar(members));
  WriteFile(folder_ + "/v.tar", Tar({{"x.png", "no picture"}, {"x.cls", "0"}}));
  v1::DatasetSpec spec = Spec("{a,b}.tar");
  spec.mutable_webdataset()->set_validation(folder_ + "/v.tar");
  // The pictures are read by their headers, or decoded.
  for (const int side : {0, 2}) {
    spec.mutable_webdataset()->set_height(side);
    spec.mutable_webdataset()->set_width(side);
    spec.mutable_webdataset()->set_channels(side / 2);
    const std::vector<FieldViolation> violations = GetFieldViolations(DescribeDataset(spec).status());
    ASSERT_EQ(violations.size(), 22);
    EXPECT_EQ(violations[0].field, "webdataset.train");
    EXPECT_EQ(violations[0].description, "has bad images, 24 of 30; mend or remove them");
    for (int i = 0; i < 20; ++i) {
      const int number = i % 12;
      EXPECT_THAT(violations[1 + i].description,
                  StartsWith(absl::StrCat(i < 12 ? "a" : "b", ".tar/", 11 + number + number / 4,
                                          ".png is no picture")));
    }
    EXPECT_EQ(violations[21].field, "webdataset.validation");
    EXPECT_EQ(violations[21].description, "has bad images, 1 of 1; mend or remove them");
  }
}

TEST_F(WebDatasetTest, TheFirstBadShardIsNamed) {
  for (int i = 10; i < 30; ++i)
    WriteFile(absl::StrCat(folder_, "/", i, ".tar"), i < 13 ? Tar({}) : "no archive");
  Shard("10.tar", 0, 3);
  ExpectViolation(Spec(""), "webdataset.train", "11.tar has no samples");
}

TEST_F(WebDatasetTest, PartsOfADataSetAreNotMixed) {
  Shard("flowers-train-0.tar", 0, 3);
  Shard("flowers-val-0.tar", 3, 3);
  ExpectViolation(Spec(""), "webdataset.train", "has shards of several parts of a data set");
  v1::DatasetSpec spec = Spec("flowers-train-{0,0}.tar");
  ExpectViolation(spec, "webdataset.train", "twice");
  spec.mutable_webdataset()->set_train(folder_ + "/flowers-train-{0..0}.tar");
  spec.mutable_webdataset()->set_validation(folder_ + "/flowers-val-0.tar");
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Values(*opened->train), ElementsAre(0, 1, 2));
  EXPECT_THAT(Values(*opened->validation), ElementsAre(3, 4, 5));
}

TEST_F(WebDatasetTest, OddMembersAreSkippedAndCounted) {
  Members members = {{"./a/x.png", Png(3, 2, 1)}, {"./a/x.seg.png", "mask"},   {"README", "x"},
                     {"./a/x.CLS", " 2\n"},       {"__MACOSX/a/._x.png", "x"}, {"../y.png", "x"},
                     {".hidden/y.cls", "x"}};
  // More endings than are counted apart.
  for (int i = 0; i < 200; ++i) members.emplace_back(absl::StrCat("z.", i), "x");
  members.emplace_back(absl::StrCat("z.", std::string(90, 'z')), "x");
  // More zeros than an archive needs, as tar and Python's tarfile write.
  WriteFile(folder_ + "/0.tar", Tar(members) + std::string(9 * 1024, '\0'));
  const absl::StatusOr<DatasetInfo> described = DescribeDataset(Spec("0.tar"));
  ASSERT_TRUE(described.ok()) << described.status();
  EXPECT_EQ(described->train_samples, 1);
  EXPECT_EQ(described->classes, 3);
  ASSERT_EQ(described->notices.size(), 1);
  EXPECT_THAT(described->notices[0], HasSubstr("skipped 206 members that are neither picture nor label: "));
  EXPECT_THAT(described->notices[0], HasSubstr(" with other endings, 3 hidden, "));
}

TEST_F(WebDatasetTest, WrongFieldsAreRefused) {
  Shard("0.tar", 0, 3);
  const auto expect = [&](const std::string& field, const std::string& part, auto change) {
    v1::DatasetSpec spec = Spec("0.tar");
    change(*spec.mutable_webdataset());
    ExpectViolation(spec, "webdataset." + field, part);
  };
  expect("train", "is required", [](auto& source) { source.clear_train(); });
  expect("height", "is -1", [](auto& source) { source.set_height(-1), source.set_width(1); });
  expect("width", "is missing", [](auto& source) { source.set_height(1); });
  expect("channels", "must be 1 or 3", [](auto& source) { source.set_channels(2); });
  expect("classes", "must not be negative", [](auto& source) { source.set_classes(-1); });
  expect("shuffle_buffer", "is -1", [](auto& source) { source.set_shuffle_buffer(-1); });
  expect("train", "2.png has the label 2, but webdataset.classes is 2",
         [](auto& source) { source.set_classes(2); });
  Shard("v.tar", 10, 1);
  WriteFile(folder_ + "/v.tar", Tar({{"x.png", Png(3, 2, 1)}, {"x.cls", "3"}}));
  expect("validation", "x.png has the label 3, but the training labels are below 3",
         [&](auto& source) { source.set_validation(folder_ + "/v.tar"); });
}

TEST_F(WebDatasetTest, LongNamesOfGnuAndPaxAreRead) {
  // Two names of more than 100 bytes that differ at their ends alone.
  const std::string stem(120, 'n');
  const auto pax = [](const std::string& name) {
    const std::string record = absl::StrCat(" path=", name, "\n");
    std::string text = absl::StrCat(record.size() + 3, record);
    EXPECT_EQ(text.size(), record.size() + 3);
    return text;
  };
  // A header of the given type, with its content.
  const auto special = [](char type, const std::string& content) {
    std::string tar = Tar({{"special", content}});
    tar.resize(tar.size() - 1024);
    tar[156] = type;
    std::string sum(8, ' ');
    tar.replace(148, 8, sum);
    unsigned total = 0;
    for (int i = 0; i < 512; ++i) total += static_cast<uint8_t>(tar[i]);
    std::snprintf(sum.data(), sum.size(), "%06o", total);
    tar.replace(148, 8, sum);
    return tar;
  };
  const auto member = [](const std::string& name, const std::string& content) {
    const std::string tar = Tar({{name, content}});
    return tar.substr(0, tar.size() - 1024);
  };
  const std::string cut = stem.substr(0, 100);
  WriteFile(folder_ + "/0.tar", special('x', pax(stem + "1.png")) + member(cut, Png(3, 2, 1)) +
                                    special('x', pax(stem + "1.cls")) + member(cut, "0") +
                                    special('L', stem + "2.png") + member(cut, Png(3, 2, 2)) +
                                    special('L', stem + "2.cls") + member(cut, "1") +
                                    std::string(1024, '\0'));
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(Spec("0.tar"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT(Values(*opened->train), ElementsAre(1, 2));
  WriteFile(folder_ + "/0.tar", special('x', "x") + member(cut, Png(3, 2, 1)) + std::string(1024, '\0'));
  ExpectViolation(Spec("0.tar"), "webdataset.train", "a pax header cannot be read");
}

TEST_F(WebDatasetTest, AShardThatChangesWhileItIsOpenIsAnError) {
  Shard("0.tar", 0, 3);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(Spec("0.tar"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::vector<uint8_t> sample(6);
  int32_t label = 0;
  EXPECT_TRUE(opened->train->Gather({1}, sample.data(), &label).ok());
  EXPECT_THAT(sample, Each(1));
  // A new file with other samples of the same sizes.
  fs::remove(folder_ + "/0.tar");
  Shard("0.tar", 3, 3);
  // The new file may have the inode and the time of the old file.
  fs::last_write_time(folder_ + "/0.tar", fs::last_write_time(folder_ + "/0.tar") + std::chrono::seconds(1));
  const absl::Status status = opened->train->Gather({1}, sample.data(), &label);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("0.tar has changed since it was opened"));
  fs::remove(folder_ + "/0.tar");
  EXPECT_THAT(std::string(opened->train->Gather({1}, sample.data(), &label).message()),
              HasSubstr("does not exist"));
}

TEST_F(WebDatasetTest, ADigestCoversAllShardsOfAPattern) {
  Shard("0.tar", 0, 3);
  Shard("1.tar", 3, 3);
  const v1::DatasetSpec spec = Spec("{0..1}.tar");
  const absl::StatusOr<DataDigest> before = DigestData(spec);
  ASSERT_TRUE(before.ok()) << before.status();
  EXPECT_EQ(*DigestData(spec), *before);
  Shard("1.tar", 3, 4);
  EXPECT_THAT(ChangedFields(*before, *DigestData(spec)), ElementsAre("webdataset.train"));
  fs::remove(folder_ + "/1.tar");
  EXPECT_FALSE(DigestData(spec).ok());
}

// DigestData reads no shard, so that a job of large shards starts soon.
TEST_F(WebDatasetTest, OpenedShardsHaveADigestOfTheirLabelsAndLengths) {
  const auto open = [&](const Members& members) {
    WriteFile(folder_ + "/0.tar", Tar(members));
    const absl::StatusOr<OpenedDataset> opened = OpenDataset(Spec("0.tar"));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return std::pair(*DigestData(Spec("0.tar")), opened.ok() ? opened->info.samples_sha256 : "");
  };
  const std::string png = Png(3, 2, 1);
  const auto [files, samples] = open({{"x.png", png}, {"x.cls", "0"}, {"y.png", png}, {"y.cls", "1"}});
  EXPECT_EQ(samples.size(), 64);
  EXPECT_EQ(open({{"x.png", png}, {"x.cls", "0"}, {"y.png", png}, {"y.cls", "1"}}),
            std::pair(files, samples));
  // Another label, and a longer picture. The file keeps its size.
  for (const Members& members :
       {Members{{"x.png", png}, {"x.cls", "1"}, {"y.png", png}, {"y.cls", "1"}},
        Members{{"x.png", Png(3, 2, 1, false)}, {"x.cls", "0"}, {"y.png", png}, {"y.cls", "1"}}}) {
    const auto changed = open(members);
    EXPECT_EQ(changed.first, files);
    EXPECT_NE(changed.second, samples);
  }
  EXPECT_EQ(DescribeDataset(Spec("0.tar"))->samples_sha256, "");
}

TEST_F(WebDatasetTest, CountsWithoutHoldingAllSamples) {
  Shard("0.tar", 0, 3);
  Shard("1.tar", 3, 4);
  v1::DatasetSpec spec = Spec("{0..1}.tar");
  spec.mutable_normalization()->set_from_data(true);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const absl::StatusOr<TrainingCounts> counts = CountTraining(spec, opened->info);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_THAT(counts->classes, ElementsAre(3, 2, 2));
  EXPECT_THAT(counts->statistics.mean, ElementsAre(3));
  EXPECT_DOUBLE_EQ(opened->info.normalization.mean[0], 3 / 255.0);
  const auto classes = SamplesOfClasses(*opened->train, opened->info, std::nullopt);
  ASSERT_TRUE(classes.ok()) << classes.status();
  EXPECT_THAT((*classes)[1], ElementsAre(1, 4));
}

}  // namespace
}  // namespace tandem
