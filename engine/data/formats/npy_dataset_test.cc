#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class NpyTest : public ::testing::Test {
 protected:
  v1::DatasetSpec Spec(const std::string& inputs, const std::string& targets) {
    v1::DatasetSpec spec;
    spec.mutable_npy()->mutable_train_inputs()->set_path(WriteFile(folder_ + "/x.npy", inputs));
    spec.mutable_npy()->mutable_train_targets()->set_path(WriteFile(folder_ + "/y.npy", targets));
    return spec;
  }
  OpenedDataset Open(const v1::DatasetSpec& spec) {
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec);
    EXPECT_TRUE(info.ok()) << info.status();
    absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : OpenedDataset();
  }
  const std::string folder_ = FreshFolder();
  const std::string floats_ = Npy("<f4", "(2, 3)", Bytes<float>({1, 2, 3, 4, 5, 6}));
  const std::string labels_ = Npy("<i8", "(2,)", Bytes<int64_t>({3, 0}));
};

TEST_F(NpyTest, FloatsAndClasses) {
  const OpenedDataset opened = Open(Spec(floats_, labels_));
  EXPECT_EQ(opened.info.shape, Shape({3}));
  EXPECT_EQ(opened.info.sample_type, SampleType::kFloats);
  EXPECT_EQ(opened.info.target_type, TargetKind::kClass);
  EXPECT_EQ(opened.info.classes, 4);
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(3, 0));
}

TEST_F(NpyTest, BytesDoublesAndHalves) {
  OpenedDataset opened = Open(Spec(Npy("|u1", "(2, 1, 1, 2)", "\x01\x02\x03\x04"),
                                   Npy("<f8", "(2, 2)", Bytes<double>({0.5, 1, 2, 3}))));
  EXPECT_EQ(opened.info.shape, Shape({1, 1, 2}));
  EXPECT_EQ(opened.info.sample_type, SampleType::kBytes);
  EXPECT_EQ(opened.info.target_type, TargetKind::kValues);
  EXPECT_EQ(opened.info.target_shape, Shape({2}));
  EXPECT_THAT(Samples<uint8_t>(*opened.train), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Targets<float>(*opened.train), ElementsAre(0.5, 1, 2, 3));
  // 1, -2 and the smallest number above 0.
  opened = Open(Spec(Npy("<f2", "(3, 1)", Bytes<uint16_t>({0x3C00, 0xC000, 0x0001})),
                     Npy("|b1", "(3,)", std::string("\1\0\1", 3))));
  EXPECT_THAT(Samples<float>(*opened.train), ElementsAre(1, -2, 0x1p-24F));
  EXPECT_EQ(opened.info.classes, 2);
}

// Bytes of wider integers would be silently wrong samples.
TEST_F(NpyTest, ValidationBytesAreBytes) {
  v1::DatasetSpec spec = Spec(Npy("|u1", "(2, 3)", "\x01\x02\x03\x04\x05\x06"), labels_);
  const auto validate_by = [&](const std::string& inputs) {
    spec.mutable_npy()->mutable_validation_inputs()->set_path(WriteFile(folder_ + "/vx.npy", inputs));
    spec.mutable_npy()->mutable_validation_targets()->set_path(WriteFile(folder_ + "/vy.npy", labels_));
  };
  validate_by(Npy("<u2", "(2, 3)", Bytes<uint16_t>({1, 2, 3, 4, 5, 6})));
  ExpectViolation(spec, "npy.validation_inputs",
                  "has dtype '<u2' and shape [2, 3]; bytes must be uint8: save array.astype('uint8')");
  validate_by(Npy("<u8", "(2, 3)", Bytes<uint64_t>({1, 2, 3, 4, 5, 6})));
  ExpectViolation(spec, "npy.validation_inputs", "bytes must be uint8");
  validate_by(Npy("|u1", "(2, 3)", "\x06\x05\x04\x03\x02\x01"));
  EXPECT_THAT(Samples<uint8_t>(*Open(spec).validation), ElementsAre(6, 5, 4, 3, 2, 1));
  // Floats are read from integers of any width.
  spec.mutable_npy()->set_inputs(v1::SAMPLE_KIND_FLOATS);
  validate_by(Npy("<u2", "(2, 3)", Bytes<uint16_t>({600, 5, 4, 3, 2, 1})));
  EXPECT_THAT(Samples<float>(*Open(spec).validation), ElementsAre(600, 5, 4, 3, 2, 1));
}

TEST_F(NpyTest, Tokens) {
  const OpenedDataset opened = Open(Spec(Npy("<i4", "(2, 2)", Bytes<int32_t>({1, 2, 3, 4})),
                                         Npy("<i4", "(2, 2)", Bytes<int32_t>({2, 3, 4, 9}))));
  EXPECT_EQ(opened.info.sample_type, SampleType::kTokens);
  EXPECT_EQ(opened.info.target_type, TargetKind::kTokens);
  EXPECT_EQ(opened.info.classes, 10);
  EXPECT_THAT(Samples<int32_t>(*opened.train), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(2, 3, 4, 9));
}

TEST_F(NpyTest, OrdersOfBytesAndElements) {
  const std::string fortran = Npy(">i2", "(2L, 3L)", std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12), "True");
  EXPECT_THAT(Samples<float>(*Open(Spec(fortran, labels_)).train), ElementsAre(1, 2, 3, 4, 5, 6));
  v1::DatasetSpec spec = Spec(Zip({{"x.npy", fortran}}, false), labels_);
  EXPECT_THAT(Samples<float>(*Open(spec).train), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(NpyTest, ImagesGetChannelsFirst) {
  v1::DatasetSpec spec = Spec(Npy("|u1", "(2, 1, 2, 3)", "\1\2\3\4\5\6\7\10\11\12\13\14"), labels_);
  spec.mutable_npy()->set_layout(v1::ARRAY_LAYOUT_NHWC);
  const OpenedDataset opened = Open(spec);
  EXPECT_EQ(opened.info.shape, Shape({3, 1, 2}));
  EXPECT_THAT(Samples<uint8_t>(*opened.train), ElementsAre(1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12));
  spec = Spec(Npy("|u1", "(2, 2, 1)", "\1\2\3\4"), labels_);
  EXPECT_EQ(Open(spec).info.shape, Shape({2, 1}));
  spec.mutable_npy()->set_layout(v1::ARRAY_LAYOUT_NCHW);
  EXPECT_EQ(Open(spec).info.shape, Shape({1, 2, 1}));
}

TEST_F(NpyTest, OneHotRowsAndIgnoredTargets) {
  v1::DatasetSpec spec = Spec(floats_, Npy("<f4", "(2, 2)", Bytes<float>({0, 1, 1, 0})));
  EXPECT_EQ(Open(spec).info.target_type, TargetKind::kValues);
  spec.mutable_npy()->set_targets(v1::TARGET_KIND_CLASS);
  EXPECT_THAT(Targets<int32_t>(*Open(spec).train), ElementsAre(1, 0));
  spec = Spec(floats_, Npy("|i1", "(2,)", "\1\xff"));
  ExpectViolation(spec, "npy.train_targets", "if such targets are to be ignored, give npy.ignore_index: -1");
  spec.mutable_npy()->set_ignore_index(-1);
  const OpenedDataset opened = Open(spec);
  EXPECT_THAT(Targets<int32_t>(*opened.train), ElementsAre(1, -1));
  EXPECT_EQ(opened.info.classes, 2);
  EXPECT_EQ(opened.info.ignored_label, -1);
  spec.mutable_npy()->set_ignore_index(3);
  ExpectViolation(spec, "npy.ignore_index", "is 3; it must be negative");
}

TEST_F(NpyTest, MembersOfAnArchive) {
  for (const bool large : {false, true}) {
    const std::string path = WriteFile(folder_ + "/data.npz", Zip({{"x_train.npy", floats_},
                                                                   {"y_train.npy", labels_},
                                                                   {"x_test.npy", floats_},
                                                                   {"y_test.npy", labels_}},
                                                                  large));
    v1::DatasetSpec spec;
    v1::NpySource* npy = spec.mutable_npy();
    for (v1::NpyArray* array : {npy->mutable_train_inputs(), npy->mutable_train_targets(),
                                npy->mutable_validation_inputs(), npy->mutable_validation_targets()}) {
      array->set_path(path);
    }
    npy->mutable_train_inputs()->set_member("x_train");
    npy->mutable_train_targets()->set_member("y_train");
    npy->mutable_validation_inputs()->set_member("x_test");
    npy->mutable_validation_targets()->set_member("y_test");
    const OpenedDataset opened = Open(spec);
    EXPECT_THAT(Samples<float>(*opened.validation), ElementsAre(1, 2, 3, 4, 5, 6));
    npy->mutable_train_inputs()->set_member("x");
    ExpectViolation(spec, "npy.train_inputs", "has no member 'x'; it has x_train, y_train, x_test, y_test");
    npy->mutable_train_inputs()->clear_member();
    ExpectViolation(spec, "npy.train_inputs", "give the member that is meant");
  }
}

TEST_F(NpyTest, NamesTheDtypeAtFault) {
  ExpectViolation(Spec(Npy("|O", "(2, 3)", ""), labels_), "npy.train_inputs",
                  "x.npy has dtype '|O', Python objects");
  ExpectViolation(Spec(Npy("<U5", "(2, 3)", ""), labels_), "npy.train_inputs", "has dtype '<U5', text");
  ExpectViolation(Spec(Npy("<c8", "(2, 3)", ""), labels_), "npy.train_inputs", "has dtype '<c8'; it must be");
  v1::DatasetSpec spec = Spec(floats_, Npy("<f4", "(2,)", Bytes<float>({0.5, 1})));
  EXPECT_EQ(Open(spec).info.target_type, TargetKind::kValues);
  spec.mutable_npy()->set_targets(v1::TARGET_KIND_CLASS);
  ExpectViolation(spec, "npy.train_targets", "y.npy holds a number at index 0 that is no whole number");
}

TEST_F(NpyTest, RefusesHostileFiles) {
  ExpectViolation(Spec(floats_.substr(0, floats_.size() - 1), labels_), "npy.train_inputs",
                  "is truncated: its header announces <f4 [2, 3], 24 bytes, and 23 follow");
  ExpectViolation(Spec(floats_ + "x", labels_), "npy.train_inputs", "is longer than its header announces");
  ExpectViolation(Spec("not an array", labels_), "npy.train_inputs", "is not an NPY file");
  ExpectViolation(Spec(floats_.substr(0, 40), labels_), "npy.train_inputs", "it ends within its header");
  ExpectViolation(Spec(Npy("<f4", "(99999999, 99999999)", ""), labels_), "npy.train_inputs",
                  "announces more than");
  ExpectViolation(Spec(floats_, Npy("<i8", "(3,)", Bytes<int64_t>({1, 2, 3}))), "npy.train_targets",
                  "y.npy has dtype '<i8' and shape [3], but ");
  ExpectViolation(Spec(floats_, Npy("<i8", "(2,)", Bytes<int64_t>({1, -2}))), "npy.train_targets",
                  "holds -2 at index 1; it must be a class from 0");
  v1::DatasetSpec spec = Spec(floats_, labels_);
  spec.mutable_npy()->set_classes(3);
  ExpectViolation(spec, "npy.train_targets", "holds class 3 at index 0, outside the 3 (0 to 2)");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectViolation(Spec(Npy("<f4", "(2, 1)", Bytes<float>({1, nan})), labels_), "npy.train_inputs",
                  "holds nan at index [1, 0]", false);
  // 64-bit sizes that are negative as signed numbers or impossibly large.
  for (const uint64_t size : {static_cast<uint64_t>(-5), uint64_t{1} << 63, uint64_t{1} << 50}) {
    std::string lying = Zip({{"x.npy", floats_}}, true);
    lying.replace(lying.rfind(Little(floats_.size(), 8)), 8, Little(size, 8));
    ExpectViolation(Spec(lying, labels_), "npy.train_inputs", "x.npy");
  }
  std::string zip = Zip({{"x.npy", floats_}}, false);
  ExpectViolation(Spec(zip.substr(0, zip.size() / 2), labels_), "npy.train_inputs",
                  "it has no directory at its end");
  zip[60] ^= 0x55;
  EXPECT_FALSE(OpenDataset(Spec(zip, labels_)).ok());
  ExpectViolation(v1::DatasetSpec([&] {
                    v1::DatasetSpec missing = Spec(floats_, labels_);
                    missing.mutable_npy()->clear_train_targets();
                    return missing;
                  }()),
                  "npy.train_targets.path", "is required");
}

}  // namespace
}  // namespace tandem
