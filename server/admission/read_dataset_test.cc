#include "server/admission/read_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/data/dataset.h"
#include "server/admission/data_facts.h"
#include "server/admission/idx_files.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadDatasetTest : public ::testing::Test {
 protected:
  v1::DatasetSpec Shapes() {
    WriteNamedSet(folder_);
    v1::DatasetSpec spec;
    spec.mutable_idx()->set_train_images(folder_ + "/train-images-idx3-ubyte");
    spec.mutable_idx()->set_train_labels(folder_ + "/train-labels-idx1-ubyte");
    return spec;
  }
  absl::StatusOr<internal::v1::DataFacts> Read(const v1::DatasetSpec& spec, bool counts = false) {
    internal::v1::DataTask task;
    *task.mutable_dataset() = spec;
    task.set_counts(counts);
    return reader_.Read(task);
  }

  const std::string folder_ = FreshFolder();
  LocalDatasetReader reader_;
};

TEST_F(ReadDatasetTest, FactsAreWhatDescribingSays) {
  v1::DatasetSpec spec = Shapes();
  spec.mutable_validation_split()->set_fraction(0.25);
  spec.mutable_normalization()->set_from_data(true);
  spec.set_train_limit(5);
  spec.add_augmentation()->mutable_mixup()->set_alpha(0.2);
  const absl::StatusOr<DatasetInfo> described = DescribeDataset(spec);
  ASSERT_TRUE(described.ok()) << described.status();
  // The catalog also asks for the source alone.
  const absl::StatusOr<internal::v1::DataFacts> facts = Read(SourceAlone(spec));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->dataset().train_samples(), 12);
  const absl::StatusOr<DatasetInfo> info = DescribeFromSource(spec, InfoOf(*facts, SourceAlone(spec)));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->shape, described->shape);
  EXPECT_EQ(info->classes, described->classes);
  EXPECT_EQ(info->train_samples, 5);
  EXPECT_EQ(info->validation_samples, 3);
  EXPECT_EQ(info->memory_bytes, described->memory_bytes);
  EXPECT_EQ(info->sample_type, described->sample_type);
  EXPECT_EQ(info->target_type, described->target_type);
  EXPECT_EQ(info->target_shape, described->target_shape);
  EXPECT_TRUE(info->mixes_classes);
  EXPECT_EQ(info->normalization.mean, described->normalization.mean);
  EXPECT_EQ(info->one_label, described->one_label);
}

// A worker that a hostile file took over may send any facts.
TEST_F(ReadDatasetTest, NobodyBelievesWhatCannotBe) {
  const absl::StatusOr<internal::v1::DataFacts> facts = Read(Shapes(), /*counts=*/true);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(CheckFacts(*facts).ok()) << CheckFacts(*facts);
  const std::vector<std::function<void(internal::v1::DataFacts&)>> lies = {
      [](auto& lie) { lie.mutable_dataset()->set_shape(0, -1); },
      [](auto& lie) { lie.mutable_dataset()->set_shape(0, 0); },
      [](auto& lie) { lie.mutable_dataset()->set_shape(0, int64_t{1} << 62); },
      [](auto& lie) {
        for (int i = 0; i < 20; ++i) lie.mutable_dataset()->add_shape(1);
      },
      [](auto& lie) { lie.mutable_dataset()->add_target_shape(-5); },
      [](auto& lie) { lie.mutable_dataset()->set_train_samples(-1); },
      [](auto& lie) { lie.mutable_dataset()->set_validation_samples(int64_t{1} << 60); },
      [](auto& lie) { lie.mutable_dataset()->set_classes(-1); },
      [](auto& lie) { lie.mutable_dataset()->set_class_counts(0, -1); },
      [](auto& lie) { lie.mutable_dataset()->set_sample_kind(static_cast<v1::SampleKind>(77)); },
      [](auto& lie) { lie.set_memory_bytes(-1); }, [](auto& lie) { lie.add_class_labels(-1); },
      [](auto& lie) { lie.add_class_labels(static_cast<int32_t>(lie.dataset().classes())); },
      [](auto& lie) {
        for (size_t i = 0; i <= kMostDataEntries; ++i) lie.add_class_labels(0);
      },
      // These samples are pictures.
      [](auto& lie) { lie.add_category_columns()->set_inputs(1); }};
  for (size_t i = 0; i < lies.size(); ++i) {
    internal::v1::DataFacts lie = *facts;
    lies[i](lie);
    EXPECT_EQ(CheckFacts(lie).code(), absl::StatusCode::kInternal) << i;
  }
}

TEST_F(ReadDatasetTest, FactsHaveTheOrderOfClasses) {
  internal::v1::DataFacts facts = *Read(Shapes());
  EXPECT_EQ(facts.class_labels_size(), 0);
  DatasetInfo info;
  info.class_labels = {1, 0};
  *facts.mutable_class_labels() = FactsOf(info).class_labels();
  EXPECT_TRUE(CheckFacts(facts).ok()) << CheckFacts(facts);
  EXPECT_EQ(InfoOf(facts, Shapes())->class_labels, info.class_labels);
  info.class_labels.resize(kMostDataEntries + 1);
  EXPECT_EQ(FactsOf(info).class_labels_size(), 0);
}

// A part of the columns would give another network than the user expects.
TEST_F(ReadDatasetTest, FactsHaveAllColumnsOfCategoriesOrNone) {
  DatasetInfo info;
  for (int i = 0; i < kMostCategoryColumns; ++i) {
    v1::EmbeddedColumn& column = info.category_columns.emplace_back();
    column.set_name("c");
    column.set_first_input(2 * i);
    column.set_inputs(2);
  }
  EXPECT_EQ(FactsOf(info).category_columns_size(), kMostCategoryColumns);
  EXPECT_EQ(FactsOf(info).category_columns(1).first_input(), 2);
  info.category_columns.back().set_name(std::string(kMostColumnNamesBytes, 'c'));
  EXPECT_EQ(FactsOf(info).category_columns_size(), 0);
  info.category_columns.back().set_name("c");
  info.category_columns.push_back(info.category_columns.back());
  EXPECT_EQ(FactsOf(info).category_columns_size(), 0);
}

TEST_F(ReadDatasetTest, OnlySamplesInShardsStayInTheirFiles) {
  const absl::StatusOr<internal::v1::DataFacts> facts = Read(Shapes());
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_FALSE(InfoOf(*facts, Shapes())->stays_in_files);
  v1::DatasetSpec shards;
  shards.mutable_webdataset()->set_train("0.tar");
  const absl::StatusOr<DatasetInfo> info = InfoOf(*facts, shards);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->stays_in_files);
  EXPECT_TRUE(DescribeFromSource(shards, info)->stays_in_files);
}

TEST_F(ReadDatasetTest, FactsOfATableHaveItsColumnsOfCategories) {
  const std::string path = folder_ + "/table.csv";
  std::ofstream(path) << "size,city,y,kind\n1,a,2,x\n2,b,3,\n3,a,4,x\n4,b,5,z\n5,a,6,z\n";
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(path);
  spec.mutable_csv()->add_target_columns("y");
  const absl::StatusOr<internal::v1::DataFacts> facts = Read(spec);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_TRUE(CheckFacts(*facts).ok()) << CheckFacts(*facts);
  const absl::StatusOr<DatasetInfo> info = InfoOf(*facts, spec);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->shape, Shape({8}));
  ASSERT_EQ(info->category_columns.size(), 2);
  // Two cities, and an input for others.
  EXPECT_EQ(info->category_columns[0].name(), "city");
  EXPECT_EQ(info->category_columns[0].first_input(), 1);
  EXPECT_EQ(info->category_columns[0].inputs(), 3);
  // Two kinds, an input for others, and an input for missing cells.
  EXPECT_EQ(info->category_columns[1].name(), "kind");
  EXPECT_EQ(info->category_columns[1].first_input(), 4);
  EXPECT_EQ(info->category_columns[1].inputs(), 4);

  const std::vector<std::function<void(v1::EmbeddedColumn&)>> lies = {
      [](auto& column) { column.set_first_input(2); }, [](auto& column) { column.set_inputs(0); },
      [](auto& column) { column.set_inputs(5); }, [](auto& column) { column.set_first_input(-1); },
      [](auto& column) { column.set_first_input(int64_t{1} << 62); }};
  for (size_t i = 0; i < lies.size(); ++i) {
    internal::v1::DataFacts lie = *facts;
    lies[i](*lie.mutable_category_columns(1));
    EXPECT_EQ(CheckFacts(lie).code(), absl::StatusCode::kInternal) << i;
  }
}

TEST_F(ReadDatasetTest, CountsOnlyIfAsked) {
  EXPECT_EQ(Read(Shapes())->dataset().class_counts_size(), 0);
  const absl::StatusOr<internal::v1::DataFacts> facts = Read(Shapes(), /*counts=*/true);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_THAT(
      std::vector<int64_t>(facts->dataset().class_counts().begin(), facts->dataset().class_counts().end()),
      ElementsAre(4, 4, 4));
  ASSERT_EQ(facts->dataset().mean_size(), 1);
  EXPECT_DOUBLE_EQ(facts->dataset().mean(0), 1.0 / 255);
}

TEST_F(ReadDatasetTest, FactsAreSmallWhateverTheFilesHold) {
  const std::string path = folder_ + "/names.csv";
  {
    std::ofstream table(path);
    table << "a,kind\n";
    for (int i = 0; i < 20000; ++i) table << i << "," << std::string(60, 'x') << i << "\n";
  }
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(path);
  const absl::StatusOr<internal::v1::DataFacts> facts = Read(spec, /*counts=*/true);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->dataset().classes(), 20000);
  EXPECT_EQ(facts->dataset().class_counts_size(), kMostDataEntries);
  EXPECT_LT(facts->dataset().class_names_size(), kMostDataEntries);
  EXPECT_GT(facts->dataset().class_names_size(), 1000);
  EXPECT_LT(facts->ByteSizeLong(), kMostDataFactsBytes);
}

TEST_F(ReadDatasetTest, ErrorsOfTheSourceAndOfTheRestComeTogether) {
  v1::DatasetSpec spec = Shapes();
  spec.mutable_idx()->set_classes(150000000);
  spec.set_train_limit(-1);
  const absl::Status status = DescribeFromSource(spec,
                                                 [&]() -> absl::StatusOr<DatasetInfo> {
                                                   const auto facts = Read(SourceAlone(spec));
                                                   if (!facts.ok()) return facts.status();
                                                   return InfoOf(*facts, SourceAlone(spec));
                                                 }())
                                  .status();
  const std::vector<FieldViolation> found = GetFieldViolations(status);
  ASSERT_EQ(found.size(), 2) << status;
  EXPECT_EQ(found[0].field, "idx.classes");
  EXPECT_THAT(found[0].description, HasSubstr("is 150000000; labels are bytes: it must be from 2 to 256"));
  EXPECT_EQ(found[1].field, "train_limit");
}

// A number in a description, or a single label, must not cost memory.
TEST_F(ReadDatasetTest, AFilesSizeBoundsItsClasses) {
  std::ofstream(folder_ + "/few.csv") << "a,kind\n1,0\n2,1\n";
  v1::DatasetSpec spec;
  spec.mutable_csv()->set_train(folder_ + "/few.csv");
  spec.mutable_csv()->set_targets(v1::TARGET_KIND_CLASS);
  spec.mutable_csv()->set_classes(1000);
  EXPECT_EQ(Read(spec)->dataset().classes(), 1000);
  spec.mutable_csv()->set_classes(150000000);
  for (const bool counts : {false, true}) {
    const std::vector<FieldViolation> found = GetFieldViolations(Read(spec, counts).status());
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].field, "csv.classes");
    EXPECT_THAT(found[0].description,
                HasSubstr("is 150000000, but data with 2 samples have at most 262146 classes"));
  }
  std::ofstream(folder_ + "/label.csv") << "a,kind\n1,0\n2,2000000000\n";
  spec.mutable_csv()->set_train(folder_ + "/label.csv");
  spec.mutable_csv()->clear_classes();
  const std::vector<FieldViolation> found = GetFieldViolations(Read(spec).status());
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found[0].field, "csv");
  EXPECT_THAT(found[0].description,
              HasSubstr("has the label 2000000000, but data with 2 samples have at most 262146 classes"));
}

}  // namespace
}  // namespace tandem
