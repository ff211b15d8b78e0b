// Trainings whose epochs have all classes equally often.

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/data/formats/test_files.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// A table of 18 ants and 2 bees whose only input is always 0, so that the network learns the frequencies.
v1::JobSpec Frequencies(const std::string& training) {
  std::string table = "a,kind\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&table, "7,", i < 18 ? "ant" : "bee", "\n");
  v1::JobSpec spec = FromText<v1::JobSpec>(
      absl::StrCat("dataset { csv { columns { name: 'a' kind: COLUMN_KIND_NUMBER } } } ",
                   "model { input { shape: 1 } layers { dense { units: 2 } } } ",
                   "training { loss { softmax_cross_entropy {} } optimizer { sgd { learning_rate: 1 } } ",
                   "global_batch_size: 20 epochs: 30 report { every_steps: 1 } ", training, " }"));
  spec.mutable_dataset()->mutable_csv()->set_train(WriteFile(FreshFolder() + "/table.csv", table));
  return spec;
}

double LastLoss(const v1::JobSpec& spec) {
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  EXPECT_TRUE(status.ok()) << status;
  return recorder.losses().empty() ? -1 : recorder.losses().back();
}

TEST(BalancedSamplesTest, TheNetworkLearnsEqualFrequencies) {
  const double entropy = -0.9 * std::log(0.9) - 0.1 * std::log(0.1);
  EXPECT_NEAR(LastLoss(Frequencies("")), entropy, 1e-3);
  EXPECT_NEAR(LastLoss(Frequencies("balance_samples: true")), std::log(2.0), 1e-12);
}

TEST(BalancedSamplesTest, PartnersOfMixupHaveEqualFrequenciesToo) {
  v1::JobSpec spec = Frequencies("balance_samples: true");
  spec.mutable_dataset()->add_augmentation()->mutable_mixup()->set_alpha(1);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  spec.mutable_training()->set_epochs(500);
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<double> losses = recorder.losses();
  ASSERT_EQ(losses.size(), 500);
  // Unbalanced partners have a mean loss of 0.61, for 30 % of bees.
  EXPECT_NEAR(std::accumulate(losses.begin() + 100, losses.end(), 0.0) / 400, std::log(2.0), 0.02);
}

TEST(BalancedSamplesTest, IgnoredSamplesAreLeftOut) {
  // Only bees are left.
  v1::JobSpec spec = Frequencies("balance_samples: true");
  spec.mutable_training()->mutable_loss()->mutable_softmax_cross_entropy()->set_ignore_index(0);
  EXPECT_LT(LastLoss(spec), 0.1);
}

TEST(BalancedSamplesTest, ATrainingResumesInsideAnEpochWithTheSameBits) {
  for (const int replicas : {1, 3}) {
    const v1::JobSpec spec = SmallJob(replicas, "balance_samples: true");
    Whole whole(spec, "cpu");
    EXPECT_NE(whole.model, Whole(SmallJob(replicas), "cpu").model);
    FaultyEnv env;
    Recorder first, second;
    const Result paused = TrainWithFiles(spec, "cpu", &env, &first, [](Trainer& trainer, int64_t step) {
      if (step == 10) trainer.Pause();
    });
    ASSERT_TRUE(paused.status.ok()) << paused.status;
    ASSERT_NE(paused.summary.steps() % 8, 0);
    const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
    ASSERT_TRUE(resumed.status.ok()) << resumed.status;
    EXPECT_EQ(*env.ReadFile(kModel), whole.model);
  }
}

TEST(BalancedSamplesTest, ReplicasChangeNothing) {
  const auto losses = [](int replicas) {
    v1::JobSpec spec = SmallLenet(replicas);
    spec.mutable_training()->set_balance_samples(true);
    TrainingRecorder recorder;
    const absl::Status status = Train(spec, "reference", &recorder);
    EXPECT_TRUE(status.ok()) << status;
    return recorder.losses();
  };
  const std::vector<double> one = losses(1), three = losses(3);
  ASSERT_EQ(one.size(), three.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], three[i], 1e-8);
}

TEST(BalancedSamplesTest, SomeSampleMustCount) {
  v1::JobSpec spec = Frequencies("balance_samples: true");
  std::string table = "a,kind\n";
  for (int i = 0; i < 4; ++i) absl::StrAppend(&table, i, ",1\n");
  spec.mutable_dataset()->mutable_csv()->set_train(WriteFile(FreshFolder() + "/table.csv", table + "5,0\n"));
  spec.mutable_dataset()->mutable_csv()->set_targets(v1::TARGET_KIND_CLASS);
  spec.mutable_dataset()->set_train_limit(4);
  spec.mutable_training()->mutable_loss()->mutable_softmax_cross_entropy()->set_ignore_index(1);
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot balance the training samples"));
}

}  // namespace
}  // namespace tandem
