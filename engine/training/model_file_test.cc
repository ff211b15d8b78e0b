#include "engine/training/model_file.h"

#include <cmath>
#include <map>
#include <string>

#include "engine/checkpoint/safetensors_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

constexpr char kResize[] = "image_resize";

TEST(ModelFileTest, SaysHowSamplesWerePrepared) {
  const std::string path = ::testing::TempDir() + "/model_file_test.safetensors";
  // The data set as submitted does not name its files.
  v1::JobSpec spec;
  spec.mutable_dataset()->set_name("cats-and-dogs");
  TrainedOn trained_on{
      .sample_type = SampleType::kBytes,
      .normalization = {.scale = 0.5, .mean = {1}, .standard_deviation = {2}},
      .class_names = {"cat", "dog"},
      .feature_names = {"a", "b, \"c\""},
      .target_names = {"y"},
      .resize = v1::IMAGE_RESIZE_PAD,
      .table = TrainedOn::Table{.delimiter = '\t', .columns = 4, .feature_positions = {3, 0}},
      .preparation = v1::TablePreparation()};
  v1::PreparedColumn& column = *trained_on.preparation->add_columns();
  column.set_name("a");
  column.set_kind(v1::COLUMN_KIND_NUMBER);
  column.add_numbers()->set_deviation(0.1);
  ASSERT_TRUE(WriteModel(Env::Real(), path, spec, {}, trained_on).ok());
  absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(path);
  ASSERT_TRUE(header.ok()) << header.status();
  const Shape sample({1, 2, 2});
  const absl::StatusOr<TrainedOn> read = ReadTrainedOn(header->metadata, sample);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->sample_type, SampleType::kBytes);
  EXPECT_EQ(read->normalization.scale, 0.5);
  EXPECT_THAT(read->class_names, ElementsAre("cat", "dog"));
  EXPECT_THAT(read->feature_names, ElementsAre("a", "b, \"c\""));
  EXPECT_THAT(read->target_names, ElementsAre("y"));
  EXPECT_EQ(read->resize, v1::IMAGE_RESIZE_PAD);
  ASSERT_TRUE(read->table.has_value());
  EXPECT_EQ(read->table->delimiter, '\t');
  EXPECT_EQ(read->table->columns, 4);
  EXPECT_THAT(read->table->feature_positions, ElementsAre(3, 0));
  ASSERT_TRUE(read->preparation.has_value());
  EXPECT_EQ(read->preparation->SerializeAsString(), trained_on.preparation->SerializeAsString());
  EXPECT_TRUE(NamesOf(*read).preparation.has_value());
  std::map<std::string, std::string> damaged = header->metadata;
  damaged["table_preparation"] = "{\"columns\": [{\"name\": \"a\"}]}";
  EXPECT_TRUE(absl::IsDataLoss(ReadTrainedOn(damaged, sample).status())) << "a column without a kind";
  damaged = header->metadata;
  damaged["feature_positions"] = "4";
  EXPECT_TRUE(absl::IsDataLoss(ReadTrainedOn(damaged, sample).status()));

  header->metadata[kResize] = "IMAGE_RESIZE_FOLD";
  EXPECT_TRUE(absl::IsDataLoss(ReadTrainedOn(header->metadata, sample).status()));
  // Without the key, images were not resized.
  header->metadata.erase(kResize);
  EXPECT_EQ(ReadTrainedOn(header->metadata, sample)->resize, std::nullopt);
  for (const char* key : {"normalization", "samples"}) {
    header->metadata.erase(key);
    EXPECT_TRUE(absl::IsDataLoss(ReadTrainedOn(header->metadata, sample).status())) << key;
  }
}

TEST(ModelFileTest, ImagesAreResizedWhereTheDataSetSaysTheirSize) {
  v1::DatasetSpec dataset;
  EXPECT_EQ(ResizeOf(dataset), std::nullopt);
  dataset.mutable_image_folder()->set_resize(v1::IMAGE_RESIZE_CROP);
  EXPECT_EQ(ResizeOf(dataset), std::nullopt);
  dataset.mutable_image_folder()->set_height(2);
  EXPECT_EQ(ResizeOf(dataset), v1::IMAGE_RESIZE_CROP);
}

TEST(ModelFileTest, SaysForWhichResultItWasKept) {
  const std::string path = ::testing::TempDir() + "/best_model_test.safetensors";
  v1::BestResult best;
  best.set_epoch(3);
  best.set_step(30);
  best.set_metric("loss");
  best.set_value(0.1);
  best.set_validation(true);
  ASSERT_TRUE(WriteModel(Env::Real(), path, v1::JobSpec(), {}, TrainedOn(), best).ok());
  absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(path);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_TRUE(IsModelOf(header->metadata, best));
  v1::BestResult other = best;
  other.set_step(40);
  EXPECT_FALSE(IsModelOf(header->metadata, other));
  // A step may be measured twice.
  other = best;
  other.set_value(std::nextafter(0.1, 0.0));
  EXPECT_FALSE(IsModelOf(header->metadata, other));
  header->metadata["best_result"] = "{";
  EXPECT_FALSE(IsModelOf(header->metadata, best));

  ASSERT_TRUE(WriteModel(Env::Real(), path, v1::JobSpec(), {}, TrainedOn()).ok());
  EXPECT_FALSE(IsModelOf(ReadSafetensorsHeader(path)->metadata, v1::BestResult()));
}

}  // namespace
}  // namespace tandem
