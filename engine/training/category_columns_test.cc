// Trainings whose first layer embeds a table's columns of categories.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/data/dataset.h"
#include "engine/data/formats/test_files.h"
#include "engine/layers/model_template.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 160;

// Rows of y = a number of the city + size, with the columns in a given order.
std::string Rows(const std::vector<std::string>& columns, int cities = 40) {
  std::string text = absl::StrJoin(columns, ",") + "\n";
  for (int i = 0; i < kRows; ++i) {
    const int city = i % cities, size = i * 7 % 11 - 5;
    std::vector<std::string> cells;
    for (const std::string& name : columns) {
      cells.push_back(name == "city"   ? absl::StrCat("c", city)
                      : name == "size" ? absl::StrCat(size)
                                       : absl::StrCat(city * 17 % 23 + size));
    }
    absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
  }
  return text;
}

class CategoryColumnsTest : public ::testing::Test {
 protected:
  // Returns a job on the table. The daemon would have given its first layer the table's columns.
  v1::JobSpec Job(const std::string& table, int epochs, double rate = 0.05) {
    v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat(
        "model { layers { embed_categories {} } layers { dense { units: 1 } } } training { loss "
        "{ mse {} } optimizer { adam { learning_rate: ",
        rate, " } } global_batch_size: 16 seed: 3 epochs: ", epochs, " report { every_steps: 1 } }"));
    WriteTable(table, &spec);
    const absl::StatusOr<DatasetInfo> info = DescribeDataset(spec.dataset());
    EXPECT_TRUE(info.ok()) << info.status();
    if (!info.ok()) return spec;
    const absl::Status expanded =
        ExpandTemplate({.sample = info->shape, .outputs = 1, .category_columns = info->category_columns},
                       spec.mutable_model());
    EXPECT_TRUE(expanded.ok()) << expanded;
    return spec;
  }
  void WriteTable(const std::string& table, v1::JobSpec* spec) {
    spec->mutable_dataset()->mutable_csv()->set_train(WriteFile(folder_ + "/table.csv", table));
    spec->mutable_dataset()->mutable_csv()->clear_target_columns();
    spec->mutable_dataset()->mutable_csv()->add_target_columns("y");
  }
  const std::string folder_ = FreshFolder();
};

TEST_F(CategoryColumnsTest, LearnsANumberForEachCategory) {
  FaultyEnv env;
  Recorder recorder;
  const v1::JobSpec spec = Job(Rows({"city", "size", "y"}), 60);
  const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  // The mean of the squared targets is above 40.
  EXPECT_LT(recorder.epochs.back().training().loss(), 1);

  WriteFile(folder_ + "/model.safetensors", *env.ReadFile(kModel));
  const absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(folder_ + "/model.safetensors");
  ASSERT_TRUE(header.ok()) << header.status();
  // 40 cities and an input for others become 21 numbers. The size stays.
  EXPECT_EQ(header->tensors.at("embed_categories_1.city.weight").shape, Shape({21, 41}));
  EXPECT_EQ(header->tensors.at("dense_1.weight").shape, Shape({1, 22}));
}

TEST_F(CategoryColumnsTest, AForkTakesColumnsByName) {
  v1::JobSpec spec = Job(Rows({"city", "size", "y"}), 4);
  const Whole whole(spec, "cpu");
  FaultyEnv env;
  Recorder recorder;
  spec.mutable_training()->set_epochs(2);
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &recorder).status.ok());
  spec.mutable_training()->set_epochs(4);
  WriteTable(Rows({"y", "size", "city"}), &spec);
  const Result fork = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(fork.status.ok()) << fork.status;
  EXPECT_EQ(recorder.losses, whole.recorder.losses);
}

TEST_F(CategoryColumnsTest, InitialWeightsTakeColumnsByName) {
  FaultyEnv env;
  Recorder trained, next;
  v1::JobSpec spec = Job(Rows({"city", "size", "y"}), 8);
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &trained).status.ok());
  const std::string model = folder_ + "/model.safetensors";
  WriteFile(model, *env.ReadFile(kModel));
  // At this rate the weights hardly change, so the losses of the first epoch are the losses of the weights.
  spec = Job(Rows({"city", "size", "y"}), 1, 1e-12);
  spec.mutable_initial_weights()->set_file(model);
  const auto begin = [&] {
    Trainer::Options options = OptionsFor(spec, "cpu", &next);
    options.initial_weights_path = model;
    const auto trainer = Trainer::Create(std::move(options));
    return trainer.ok() ? (*trainer)->Run() : trainer.status();
  };
  ASSERT_TRUE(begin().ok());
  const std::vector<double> right = next.losses;
  EXPECT_LT(right[0], trained.losses[0] / 2);
  next.losses.clear();
  WriteTable(Rows({"y", "size", "city"}), &spec);
  ASSERT_TRUE(begin().ok());
  EXPECT_EQ(next.losses, right);
}

// The table may change between the daemon's check and the training.
TEST_F(CategoryColumnsTest, RefusesColumnsOfAnotherTable) {
  v1::JobSpec spec = Job(Rows({"city", "size", "y"}), 1);
  const auto fault = [&](const std::string& table) {
    WriteTable(table, &spec);
    FaultyEnv env;
    Recorder recorder;
    return std::string(TrainWithFiles(spec, "cpu", &env, &recorder).status.message());
  };
  EXPECT_THAT(fault(Rows({"city", "size", "y"}, 41)),
              HasSubstr("is 'city' with 41 inputs from input 0, but the data set's column has 42 inputs from "
                        "input 0"));
  // The inputs are as many, but lie elsewhere.
  EXPECT_THAT(fault(Rows({"size", "city", "y"})),
              HasSubstr("model.layers[0].embed_categories.columns[0]: is 'city' with 41 inputs from input 0, "
                        "but the data set's column has 41 inputs from input 1"));
  EXPECT_EQ(fault(Rows({"city", "size", "y"})), "");
}

}  // namespace
}  // namespace tandem
