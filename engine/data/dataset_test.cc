#include "engine/data/dataset.h"

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/field_violations.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Header(uint8_t type, const std::vector<uint32_t>& extents) {
  std::string header = {0, 0, static_cast<char>(type), static_cast<char>(extents.size())};
  for (const uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<char>(extent >> shift));
  }
  return header;
}

// Four images of 2x3 with ascending bytes and the labels 0 1 2 1. Two of them are also the validation
// samples.
class IdxTest : public ::testing::Test {
 protected:
  IdxTest() {
    images_ = Header(8, {4, 2, 3});
    for (int i = 0; i < 24; ++i) images_.push_back(static_cast<char>(i));
    spec_.mutable_idx()->set_train_images(Write("images", images_));
    spec_.mutable_idx()->set_train_labels(Write("labels", Header(8, {4}) + std::string("\0\1\2\1", 4)));
  }

  static std::string Write(const std::string& name, const std::string& content) {
    const std::string path = ::testing::TempDir() + "/dataset_test_" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  std::string images_;
  v1::DatasetSpec spec_;
};

TEST_F(IdxTest, ReadsPlainAndCompressedAlike) {
  for (const std::string& file : {images_, Gzipped(images_), Xzipped(images_)}) {
    spec_.mutable_idx()->set_train_images(Write("images", file));
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec_);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->shape, Shape({1, 2, 3}));
    EXPECT_EQ(info->classes, 3);
    EXPECT_EQ(info->train_samples, 4);
    EXPECT_EQ(info->validation_samples, 0);
    EXPECT_EQ(info->memory_bytes, 4 * (6 + 4));

    const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->validation, nullptr);
    std::vector<uint8_t> images(12);
    std::vector<int32_t> labels(2);
    ASSERT_TRUE(opened->train->Gather({2, 0}, images.data(), labels.data()).ok());
    EXPECT_THAT(images, ElementsAre(12, 13, 14, 15, 16, 17, 0, 1, 2, 3, 4, 5));
    EXPECT_THAT(labels, ElementsAre(2, 0));
  }
}

TEST_F(IdxTest, ReadsFilesOfSeveralCompressedMembers) {
  const std::string path = Write("images", Gzipped(images_.substr(0, 20)) + Gzipped(images_.substr(20)));
  spec_.mutable_idx()->set_train_images(path);
  EXPECT_TRUE(DescribeDataset(spec_).ok()) << DescribeDataset(spec_).status();
  EXPECT_TRUE(OpenDataset(spec_).ok());
}

TEST_F(IdxTest, ValidationAndLimits) {
  spec_.mutable_idx()->set_validation_images(spec_.idx().train_images());
  spec_.mutable_idx()->set_validation_labels(spec_.idx().train_labels());
  spec_.set_train_limit(3);
  spec_.set_validation_limit(100);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->train->size(), 3);
  EXPECT_EQ(opened->validation->size(), 4);
  EXPECT_EQ(DescribeDataset(spec_)->train_samples, 3);
  // Both files are read whole. The limit is a subset of the four samples.
  EXPECT_EQ(DescribeDataset(spec_)->memory_bytes, 2 * 4 * (6 + 4) + 4 * 4);
}

TEST_F(IdxTest, RefusesAMissingFile) {
  spec_.mutable_idx()->set_train_images("/nonexistent/images");
  ExpectViolation(spec_, "idx.train_images", "/nonexistent/images does not exist");
}

TEST_F(IdxTest, RefusesAFolder) {
  spec_.mutable_idx()->set_train_images(::testing::TempDir());
  ExpectViolation(spec_, "idx.train_images", "is not a regular file");
}

// The labels are counted before the file's end is found. The error must not compare this count.
TEST_F(IdxTest, ATruncatedFileOfManyLabelsIsThatAlone) {
  constexpr int kSamples = 3'000'000;
  spec_.mutable_idx()->set_train_images(
      Write("images", Header(8, {kSamples, 1, 1}) + std::string(kSamples, '\1')));
  const std::string labels = Gzipped(Header(8, {kSamples}) + std::string(kSamples - 1, '\1'));
  spec_.mutable_idx()->set_train_labels(Write("labels", labels));
  ExpectViolation(spec_, "idx.train_labels", "is truncated");
}

TEST_F(IdxTest, RefusesTruncatedFiles) {
  spec_.mutable_idx()->set_train_images(Write("images", images_.substr(0, images_.size() - 1)));
  ExpectViolation(spec_, "idx.train_images",
                  "is truncated: its header announces [4, 2, 3], 24 bytes, and 23 follow");
  spec_.mutable_idx()->set_train_images(Write("images", images_.substr(0, 9)));
  ExpectViolation(spec_, "idx.train_images", "is truncated");
  const std::string compressed = Gzipped(images_);
  spec_.mutable_idx()->set_train_images(Write("images", compressed.substr(0, compressed.size() - 12)));
  ExpectViolation(spec_, "idx.train_images", "is truncated");
  spec_.mutable_idx()->set_train_images(Write("images", ""));
  ExpectViolation(spec_, "idx.train_images", "is not an IDX file: it holds 0 bytes");
}

TEST_F(IdxTest, RefusesATooLongFile) {
  spec_.mutable_idx()->set_train_images(Write("images", images_ + "x"));
  ExpectViolation(spec_, "idx.train_images", "is longer than its header announces: [4, 2, 3], 24 bytes");
  spec_.mutable_idx()->set_train_images(Write("images", Gzipped(images_ + "x")));
  ExpectViolation(spec_, "idx.train_images", "is longer");
}

TEST_F(IdxTest, RefusesADamagedCompressedFile) {
  std::string compressed = Gzipped(images_);
  compressed[compressed.size() - 6] ^= 0x55;  // Within the checksum.
  spec_.mutable_idx()->set_train_images(Write("images", compressed));
  const absl::Status status = OpenDataset(spec_).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("is damaged"));
}

TEST_F(IdxTest, RefusesOtherFormatsTypesAndRanks) {
  spec_.mutable_idx()->set_train_images(Write("images", "\x89PNG and more"));
  ExpectViolation(spec_, "idx.train_images", "is not an IDX file: it begins with 0x89504e47");
  spec_.mutable_idx()->set_train_images(Write("images", Header(0x0D, {4, 2, 3}) + std::string(96, 'x')));
  ExpectViolation(spec_, "idx.train_images", "holds 32-bit floats");
  spec_.mutable_idx()->set_train_images(spec_.idx().train_labels());
  ExpectViolation(spec_, "idx.train_images", "has 1 dimensions; expected 3 or 4");
}

TEST_F(IdxTest, RefusesAHeaderThatAnnouncesTooMuch) {
  spec_.mutable_idx()->set_train_images(Write("images", Header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})));
  ExpectViolation(spec_, "idx.train_images", "more than the");
  // A small file that claims to be huge takes no memory before the claim is checked.
  spec_.mutable_idx()->set_train_images(Write("images", Gzipped(Header(8, {4, 1 << 14, 1 << 14}))));
  ExpectViolation(spec_, "idx.train_images", "is truncated");
}

TEST_F(IdxTest, RefusesCountsThatDiffer) {
  spec_.mutable_idx()->set_train_labels(Write("labels", Header(8, {3}) + std::string("\0\1\2", 3)));
  ExpectViolation(spec_, "idx.train_labels", "holds 3 labels, but ");
}

TEST_F(IdxTest, RefusesALabelOutsideTheClasses) {
  spec_.mutable_idx()->set_classes(2);
  ExpectViolation(spec_, "idx.train_labels", "holds label 2 at index 2, outside the 2 classes (0 to 1)");
}

TEST_F(IdxTest, ReportsEveryFieldAtFault) {
  spec_.mutable_idx()->clear_train_images();
  spec_.mutable_idx()->set_validation_images("/nonexistent");
  spec_.mutable_idx()->set_classes(-1);
  spec_.set_train_limit(-5);
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(DescribeDataset(spec_).status())) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, ElementsAre("idx.train_images", "idx.validation_labels", "idx.validation_images",
                                  "idx.classes", "train_limit"));
}

v1::DatasetSpec Synthetic() {
  v1::DatasetSpec spec;
  for (const int extent : {1, 8, 8}) spec.mutable_synthetic()->add_shape(extent);
  spec.mutable_synthetic()->set_classes(4);
  spec.mutable_synthetic()->set_train_samples(100);
  spec.mutable_synthetic()->set_validation_samples(10);
  return spec;
}

TEST(SyntheticTest, SamplesFollowFromTheSeedAndTheirIndexAlone) {
  const absl::StatusOr<OpenedDataset> a = OpenDataset(Synthetic());
  const absl::StatusOr<OpenedDataset> b = OpenDataset(Synthetic());
  ASSERT_TRUE(a.ok() && b.ok()) << a.status();
  std::vector<uint8_t> one(64), all(64 * 100);
  std::vector<int32_t> label(1), labels(100);
  std::vector<uint32_t> indices(100);
  std::iota(indices.begin(), indices.end(), 0);
  ASSERT_TRUE(a->train->Gather({57}, one.data(), label.data()).ok());
  ASSERT_TRUE(b->train->Gather(indices, all.data(), labels.data()).ok());
  EXPECT_EQ(label[0], labels[57]);
  EXPECT_TRUE(std::equal(one.begin(), one.end(), all.begin() + 57 * 64));
  for (const int32_t l : labels) EXPECT_TRUE(l >= 0 && l < 4);

  ASSERT_TRUE(a->validation->Gather({57 % 10}, one.data(), label.data()).ok());
  EXPECT_FALSE(std::equal(one.begin(), one.end(), all.begin() + 7 * 64));
}

TEST(SyntheticTest, RefusesNumbersThatMakeNoSense) {
  v1::DatasetSpec spec = Synthetic();
  spec.mutable_synthetic()->set_shape(1, -8);
  spec.mutable_synthetic()->set_classes(1);
  spec.mutable_synthetic()->set_train_samples(int64_t{1} << 60);
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(DescribeDataset(spec).status())) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, ElementsAre("synthetic.shape[1]", "synthetic.classes", "synthetic.train_samples"));
}

TEST(SyntheticTest, RefusesHugeSamples) {
  v1::DatasetSpec spec = Synthetic();
  spec.mutable_synthetic()->set_shape(1, int64_t{1} << 62);
  EXPECT_THAT(std::string(OpenDataset(spec).status().message()), HasSubstr("synthetic.shape: "));
}

TEST(DatasetTest, ASourceIsNeeded) {
  EXPECT_THAT(std::string(DescribeDataset({}).status().message()), HasSubstr("gives no source"));
}

TEST(DataErrorTest, OnlyFullMemoryKeepsItsCode) {
  EXPECT_EQ(DataError(absl::InvalidArgumentError("bad row")), absl::DataLossError("bad row"));
  EXPECT_EQ(DataError(absl::ResourceExhaustedError("no memory")), absl::ResourceExhaustedError("no memory"));
  EXPECT_EQ(DataError(absl::OkStatus()), absl::OkStatus());
}

}  // namespace
}  // namespace tandem
