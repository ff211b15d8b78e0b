// Trainings that continue with other data. Columns and classes are matched by name, for a checkpoint and for
// initial weights.

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/data/formats/test_files.h"
#include "engine/training/model_file.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/trained_model.h"
#include "engine/training/training_state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Twelve rows of y = 3a - 5b, with the columns in a given order.
std::string Rows(const std::vector<std::string>& columns) {
  std::string text = absl::StrJoin(columns, ",") + "\n";
  for (int i = 0; i < 12; ++i) {
    const int a = i * 7 % 5 - 2, b = i * 3 % 4 - 1;
    std::vector<int> cells;
    for (const std::string& name : columns) {
      cells.push_back(name == "a" ? a : name == "b" ? b : name == "y" ? 3 * a - 5 * b : 99);
    }
    absl::StrAppend(&text, absl::StrJoin(cells, ","), "\n");
  }
  return text;
}

class MatchedDataTest : public ::testing::Test {
 protected:
  v1::JobSpec Job(const std::string& table, int epochs, double rate = 0.01) {
    v1::JobSpec spec = FromText<v1::JobSpec>(
        absl::StrCat("model { input { shape: 2 } layers { dense { units: 1 } } } training { loss { mse {} } ",
                     "optimizer { sgd { learning_rate: ", rate,
                     " } } global_batch_size: 4 seed: 3 epochs: ", epochs, " report { every_steps: 1 } }"));
    spec.mutable_dataset()->mutable_csv()->set_train(WriteFile(folder_ + "/table.csv", table));
    return spec;
  }
  v1::JobSpec Animals(const std::string& table, int epochs) {
    v1::JobSpec spec = Job(table, epochs);
    spec.mutable_model()->mutable_layers(0)->mutable_dense()->set_units(3);
    spec.mutable_training()->mutable_loss()->mutable_softmax_cross_entropy();
    return spec;
  }
  const std::string folder_ = FreshFolder();
};

constexpr char kAnimals[] = "a,b,kind\n1,0,bird\n0,1,cat\n1,1,dog\n0,0,bird\n";

TEST_F(MatchedDataTest, AForkTakesColumnsByName) {
  const Whole whole(Job(Rows({"a", "b", "y"}), 4), "cpu");
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(Job(Rows({"a", "b", "y"}), 2), "cpu", &env, &recorder).status.ok());
  const Result result = TrainWithFiles(Job(Rows({"y", "b", "more", "a"}), 4), "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(recorder.losses, whole.recorder.losses);
  EXPECT_THAT(recorder.notices,
              Contains("The data changed since the checkpoint of step 6 was written: csv.train."));

  const Result refused = TrainWithFiles(Job(Rows({"a", "c", "y"}), 6), "cpu", &env, &recorder);
  EXPECT_TRUE(absl::IsDataLoss(refused.status)) << refused.status;
  EXPECT_THAT(std::string(refused.status.message()),
              HasSubstr("has no column 'b', which is a feature of the model"));
}

TEST_F(MatchedDataTest, AForkTakesClassesByName) {
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(Animals(kAnimals, 1), "cpu", &env, &recorder).status.ok());
  const auto checkpoint = ReadCheckpoint(&env, CheckpointPath(1));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(NamesInModel(TrainingStateFromJson(checkpoint->state)->model)->classes,
              ElementsAre("bird", "cat", "dog"));
  // With a subset of the classes the network keeps its outputs.
  Result result = TrainWithFiles(Animals("a,b,kind\n1,1,dog\n0,1,cat\n", 2), "cpu", &env, &recorder);
  EXPECT_TRUE(result.status.ok()) << result.status;
  result = TrainWithFiles(Animals("a,b,kind\n1,1,dog\n0,1,cat\n0,2,elk\n", 3), "cpu", &env, &recorder);
  EXPECT_TRUE(absl::IsDataLoss(result.status)) << result.status;
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr("row 4, column 'kind' is 'elk', a class that the model does not know"));
}

TEST_F(MatchedDataTest, DataThatStayedAreNoNotice) {
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(Job(Rows({"a", "b", "y"}), 1), "cpu", &env, &recorder).status.ok());
  ASSERT_TRUE(TrainWithFiles(Job(Rows({"a", "b", "y"}), 2), "cpu", &env, &recorder).status.ok());
  EXPECT_THAT(recorder.notices, Not(Contains(HasSubstr("changed"))));
  EXPECT_THAT(recorder.notices, Not(Contains(HasSubstr("begins anew"))));
}

// Returns a BMP file of 2 x 2 pixels of one value.
std::string Bmp(char value) {
  std::string file(54, '\0');
  file[0] = 'B', file[1] = 'M', file[2] = 70, file[10] = 54, file[14] = 40;
  // The width, the height, the planes and the bits of a pixel.
  file[18] = 2, file[22] = 2, file[26] = 1, file[28] = 24;
  // Two rows of two pixels, each filled up to 8 bytes.
  return file + std::string(16, value);
}

TEST_F(MatchedDataTest, OtherLabelsInShardsOfTheSameSizeAreNoticed) {
  const auto job = [&](const std::vector<std::string>& labels, int epochs) {
    v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat(
        "model { input { shape: [3, 2, 2] } layers { dense { units: 3 } } } ",
        "training { loss { softmax_cross_entropy {} } optimizer { sgd { learning_rate: 0.01 } } ",
        "global_batch_size: 2 seed: 3 epochs: ", epochs, " }"));
    std::vector<std::pair<std::string, std::string>> members;
    for (size_t i = 0; i < labels.size(); ++i) {
      members.emplace_back(absl::StrCat(i, ".bmp"), Bmp(static_cast<char>(20 * i)));
      members.emplace_back(absl::StrCat(i, ".cls"), labels[i]);
    }
    v1::WebDatasetSource& source = *spec.mutable_dataset()->mutable_webdataset();
    source.set_train(WriteFile(folder_ + "/0.tar", Tar(members)));
    source.set_channels(3);
    return spec;
  };
  FaultyEnv env;
  Recorder recorder;
  Result result = TrainWithFiles(job({"0", "1", "2", "0"}, 1), "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  result = TrainWithFiles(job({"0", "1", "2", "0"}, 2), "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(recorder.notices, Not(Contains(HasSubstr("changed"))));
  result = TrainWithFiles(job({"0", "2", "1", "0"}, 3), "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(recorder.notices,
              Contains("The data changed since the checkpoint of step 4 was written: samples."));
}

TEST_F(MatchedDataTest, InitialWeightsTakeColumnsByName) {
  // At this rate the weights hardly change, so the losses of the first step are the losses of the weights.
  FaultyEnv env;
  Recorder trained, next;
  ASSERT_TRUE(TrainWithFiles(Job(Rows({"a", "b", "y"}), 8, 0.05), "cpu", &env, &trained).status.ok());
  const std::string model = folder_ + "/model.safetensors";
  WriteFile(model, *env.ReadFile(kModel));
  const auto begin = [&](const v1::JobSpec& job) {
    v1::JobSpec spec = job;
    spec.mutable_initial_weights()->set_file(model);
    Trainer::Options options = OptionsFor(spec, "cpu", &next);
    options.initial_weights_path = model;
    const auto trainer = Trainer::Create(std::move(options));
    return trainer.ok() ? (*trainer)->Run() : trainer.status();
  };
  ASSERT_TRUE(begin(Job(Rows({"a", "b", "y"}), 1, 1e-12)).ok());
  const std::vector<double> right = next.losses;
  next.losses.clear();
  ASSERT_TRUE(begin(Job(Rows({"b", "y", "a"}), 1, 1e-12)).ok());
  EXPECT_EQ(next.losses, right);
  EXPECT_THAT(next.notices, Not(Contains(HasSubstr("normalization"))));
  v1::JobSpec from_data = Job(Rows({"a", "b", "y"}), 1);
  from_data.mutable_dataset()->mutable_normalization()->set_from_data(true);
  ASSERT_TRUE(begin(from_data).ok());
  EXPECT_THAT(next.notices,
              Contains(AllOf(HasSubstr("with another dataset.normalization (scale 1, mean 0 and "),
                             HasSubstr("give the numbers of \"normalization\" in their file"))));
  EXPECT_LT(right[0], trained.losses[0] / 2);
  const absl::Status refused = begin(Job(Rows({"a", "c", "y"}), 1));
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("has no column 'b', which is a feature of the model"));
  // A layer with new weights accepts any columns.
  v1::JobSpec anew = Job(Rows({"a", "c", "y"}), 1);
  anew.mutable_model()->add_layers()->mutable_dense()->set_units(1);
  anew.mutable_initial_weights()->add_layers("dense_2");
  EXPECT_THAT(std::string(begin(anew).message()), Not(HasSubstr("column")));
}

TEST_F(MatchedDataTest, InitialWeightsTellOfANormalizationThatIsLeftOut) {
  FaultyEnv env;
  Recorder trained, next;
  v1::JobSpec job = Job(Rows({"a", "b", "y"}), 1);
  job.mutable_model()->add_layers()->mutable_dense()->set_units(1);
  job.mutable_dataset()->mutable_normalization()->set_from_data(true);
  job.mutable_model()->mutable_layers(1)->mutable_dense()->set_use_bias(false);
  ASSERT_TRUE(TrainWithFiles(job, "cpu", &env, &trained).status.ok());
  const std::string model = folder_ + "/model.safetensors";
  WriteFile(model, *env.ReadFile(kModel));
  job.mutable_initial_weights()->set_file(model);
  const auto begin = [&] {
    Trainer::Options options = OptionsFor(job, "cpu", &next);
    options.initial_weights_path = model;
    const auto trainer = Trainer::Create(std::move(options));
    return trainer.ok() ? (*trainer)->Run() : trainer.status();
  };
  ASSERT_TRUE(begin().ok());
  EXPECT_THAT(next.notices, Not(Contains(HasSubstr("normalization"))));
  EXPECT_THAT(next.notices, Contains(HasSubstr("begins with 3 tensors of ")));
  job.mutable_dataset()->clear_normalization();
  ASSERT_TRUE(begin().ok());
  EXPECT_THAT(next.notices,
              Contains(HasSubstr("than this job's (scale 1, mean 0 and standard_deviation 1)")));
  // The loaded layer takes no samples.
  next.notices.clear();
  job.mutable_initial_weights()->add_layers("dense_2");
  ASSERT_TRUE(begin().ok());
  EXPECT_THAT(next.notices, Contains(HasSubstr("begins with 1 tensor of ")));
  EXPECT_THAT(next.notices, Not(Contains(HasSubstr("normalization"))));
}

TEST_F(MatchedDataTest, InitialWeightsTellOfOtherClasses) {
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(Animals(kAnimals, 1), "cpu", &env, &recorder).status.ok());
  const std::string model = folder_ + "/model.safetensors";
  WriteFile(model, *env.ReadFile(kModel));
  v1::JobSpec spec = Animals("a,b,kind\n1,0,cat\n0,1,dog\n1,1,elk\n", 1);
  spec.mutable_initial_weights()->set_file(model);
  Trainer::Options options = OptionsFor(spec, "cpu", &recorder);
  options.initial_weights_path = model;
  const auto trainer = Trainer::Create(std::move(options));
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  const absl::Status run = (*trainer)->Run();
  ASSERT_TRUE(run.ok()) << run;
  EXPECT_THAT(
      recorder.notices,
      Contains(HasSubstr("0 was 'bird' and is 'cat', 1 was 'cat' and is 'dog', 2 was 'dog' and is 'elk'")));
}

// class_weights count the classes of the data, here cat and dog, and then the model's others, here bird.
TEST_F(MatchedDataTest, SettingsOfClassesFollowTheModelsOrder) {
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(Animals(kAnimals, 1), "cpu", &env, &recorder).status.ok());
  const std::string model = folder_ + "/model.safetensors";
  WriteFile(model, *env.ReadFile(kModel));
  const auto train = [&](v1::JobSpec spec, const std::string& loss) {
    Recorder own;
    *spec.mutable_training()->mutable_loss() = FromText<v1::Loss>(loss);
    spec.mutable_initial_weights()->set_file(model);
    Trainer::Options options = OptionsFor(spec, "cpu", &own);
    options.initial_weights_path = model;
    const auto trainer = Trainer::Create(std::move(options));
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    if (!trainer.ok()) return own.losses;
    EXPECT_TRUE((*trainer)->Run().ok());
    EXPECT_TRUE((*trainer)->SaveModel(folder_ + "/next.safetensors").ok());
    return own.losses;
  };
  const v1::JobSpec named = Animals("a,b,kind\n1,1,dog\n0,1,cat\n1,0,dog\n", 2);
  const std::vector<double> losses =
      train(named, "softmax_cross_entropy { class_weights: [5, 0.5, 1] ignore_index: 2 }");
  const absl::StatusOr<TrainedModel> trained = ReadTrainedModel(named, folder_ + "/next.safetensors");
  ASSERT_TRUE(trained.ok()) << trained.status();
  // Evaluate takes labels.
  const v1::SoftmaxCrossEntropy& loss = trained->spec.training().loss().softmax_cross_entropy();
  EXPECT_THAT(loss.class_weights(), ElementsAre(1, 5, 0.5));
  EXPECT_EQ(loss.ignore_index(), 0);
  // Numbers are labels.
  v1::JobSpec numbered = Animals("a,b,kind\n1,1,2\n0,1,1\n1,0,2\n", 2);
  numbered.mutable_dataset()->mutable_csv()->set_targets(v1::TARGET_KIND_CLASS);
  EXPECT_EQ(losses, train(numbered, "softmax_cross_entropy { class_weights: [1, 5, 0.5] ignore_index: 0 }"));
  EXPECT_NE(losses, train(numbered, "softmax_cross_entropy { class_weights: [5, 0.5, 1] ignore_index: 0 }"));
}

// A fork has its own results and none of its parent's validations.
TEST_F(MatchedDataTest, AForkWithoutValidationHasNoneOfItsParents) {
  FaultyEnv env;
  Recorder recorder;
  v1::JobSpec spec = Job(Rows({"a", "b", "y"}), 2);
  spec.mutable_dataset()->mutable_csv()->set_validation(
      WriteFile(folder_ + "/other.csv", Rows({"b", "a", "y"})));
  const Result parent = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(parent.status.ok()) << parent.status;
  ASSERT_TRUE(parent.summary.has_validation());
  ASSERT_TRUE(parent.summary.best().validation());
  const Result fork = TrainWithFiles(Job(Rows({"a", "b", "y"}), 4), "cpu", &env, &recorder);
  ASSERT_TRUE(fork.status.ok()) << fork.status;
  EXPECT_FALSE(fork.summary.has_validation());
  EXPECT_FALSE(fork.summary.best().validation());
  EXPECT_GT(fork.summary.best().step(), parent.summary.steps());
  EXPECT_THAT(recorder.notices, Contains(HasSubstr("are of validation, which this job does not have")));
}

// On other data, an old best result might never be beaten.
TEST_F(MatchedDataTest, TheBestResultOfOtherDataIsForgotten) {
  FaultyEnv env;
  Recorder recorder;
  const Result parent = TrainWithFiles(Job(Rows({"a", "b", "y"}), 20, 0.05), "cpu", &env, &recorder);
  ASSERT_TRUE(parent.status.ok()) << parent.status;
  std::string other = Rows({"a", "b", "y"});
  absl::StrAppend(&other, "1,1,1000\n");
  const Result fork = TrainWithFiles(Job(other, 25, 0.05), "cpu", &env, &recorder);
  ASSERT_TRUE(fork.status.ok()) << fork.status;
  EXPECT_GT(fork.summary.best().value(), parent.summary.best().value());
  EXPECT_GT(fork.summary.best().step(), parent.summary.steps());
  EXPECT_THAT(recorder.notices, Contains(HasSubstr("are of other data: the best result begins anew")));
}

}  // namespace
}  // namespace tandem
