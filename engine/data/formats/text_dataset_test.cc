#include <string>
#include <vector>

#include "engine/base/testing/from_text.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

class TextTest : public ::testing::Test {
 protected:
  v1::DatasetSpec Spec(const std::string& text, const std::string& more) {
    v1::DatasetSpec spec = FromText<v1::DatasetSpec>("text { " + more + " }");
    spec.mutable_text()->set_train(WriteFile(folder_ + "/text.txt", text));
    return spec;
  }
  const std::string folder_ = FreshFolder();
};

TEST_F(TextTest, CharactersAreTokensAndTheNextOnesTargets) {
  const v1::DatasetSpec spec = Spec(
      "b\xC3\xA4"
      "b\xE2\x82\xAC"
      "a\nb",
      "sequence_length: 3");
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const DatasetInfo& info = opened->info;
  EXPECT_EQ(info.sample_type, SampleType::kTokens);
  EXPECT_EQ(info.target_type, TargetKind::kTokens);
  EXPECT_EQ(info.shape, Shape({3}));
  EXPECT_EQ(info.target_shape, Shape({3}));
  EXPECT_EQ(info.classes, 5);
  EXPECT_THAT(info.class_names, ElementsAre("\n", "a", "b", "\xC3\xA4", "\xE2\x82\xAC"));
  EXPECT_EQ(info.train_samples, 2);
  EXPECT_THAT(Samples<int32_t>(*opened->train), ElementsAre(2, 3, 2, 4, 1, 0));
  EXPECT_THAT(Targets<int32_t>(*opened->train), ElementsAre(3, 2, 4, 1, 0, 2));
  EXPECT_EQ(DescribeDataset(spec)->train_samples, 2);
}

TEST_F(TextTest, BytesAndStrides) {
  const absl::StatusOr<OpenedDataset> opened =
      OpenDataset(Spec("abcdef", "sequence_length: 2 stride: 1 tokens: TEXT_TOKENS_BYTES"));
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.classes, 256);
  EXPECT_EQ(opened->train->size(), 4);
  EXPECT_THAT(Samples<int32_t>(*opened->train), ElementsAre('a', 'b', 'b', 'c', 'c', 'd', 'd', 'e'));
}

TEST_F(TextTest, ASplitTakesTheEnd) {
  v1::DatasetSpec spec = Spec("abcdefghij", "sequence_length: 2 stride: 1");
  spec.mutable_validation_split()->set_fraction(0.4);
  const absl::StatusOr<OpenedDataset> opened = OpenDataset(spec);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->info.classes, 10);
  EXPECT_THAT(Samples<int32_t>(*opened->train), ElementsAre(0, 1, 1, 2, 2, 3, 3, 4));
  EXPECT_THAT(Samples<int32_t>(*opened->validation), ElementsAre(6, 7, 7, 8));
  EXPECT_THAT(Targets<int32_t>(*opened->validation), ElementsAre(7, 8, 8, 9));
  spec.mutable_validation_split()->set_stratified(true);
  ExpectViolation(spec, "validation_split.stratified", "the targets are tokens, not classes");
  spec.mutable_validation_split()->set_stratified(false);
  spec.mutable_validation_split()->set_fraction(0.1);
  ExpectViolation(spec, "validation_split.fraction", "gives 1 tokens, too few");
  // Of ten tokens this rounds to none.
  spec.mutable_validation_split()->set_fraction(0.01);
  ExpectViolation(spec, "validation_split.fraction", "gives 1 tokens, too few");
}

TEST_F(TextTest, ValidationOfItsOwn) {
  v1::DatasetSpec spec = Spec("abcabc", "sequence_length: 2");
  spec.mutable_text()->set_validation(WriteFile(folder_ + "/other.txt", "cba"));
  EXPECT_THAT(Samples<int32_t>(*OpenDataset(spec)->validation), ElementsAre(2, 1));
  WriteFile(folder_ + "/other.txt", "cbaz");
  ExpectViolation(spec, "text.validation", "has the character 'z' (U+007A) at position 3");
  WriteFile(folder_ + "/other.txt", "Cab");
  ExpectViolation(spec, "text.validation", "has the character 'C' (U+0043) at position 0");
  WriteFile(folder_ + "/other.txt", "ab\xF4\x8F\xBF\xBF");
  ExpectViolation(spec, "text.validation", "(U+10FFFF) at position 2");
  WriteFile(folder_ + "/other.txt", "ab");
  ExpectViolation(spec, "text.validation", "gives 2 tokens, too few");
}

TEST_F(TextTest, NamesTheFieldsAtFault) {
  ExpectViolation(Spec("abc", ""), "text.sequence_length", "is required; give the tokens of a sample");
  ExpectViolation(Spec("abc", "sequence_length: -1"), "text.sequence_length", "is -1; it must be from 1");
  ExpectViolation(Spec("abc", "sequence_length: 3"), "text.train",
                  "gives 3 tokens, too few for one sequence of 3");
  ExpectViolation(Spec("ab\xFF"
                       "d",
                       "sequence_length: 1"),
                  "text.train", "is not UTF-8: byte 0xff at offset 2");
  ExpectViolation(Spec("ab\xC0\x80", "sequence_length: 1"), "text.train", "byte 0xc0 at offset 2");
  ExpectViolation(Spec("ab\xE2\x82", "sequence_length: 1"), "text.train", "byte 0xe2 at offset 2");
  ExpectViolation(Spec("abc", "sequence_length: 1 stride: -1"), "text.stride", "is -1");
}

}  // namespace
}  // namespace tandem
