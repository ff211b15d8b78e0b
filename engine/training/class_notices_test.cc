// Notices of classes without training or validation samples, and of a batch larger than the data.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/data/formats/test_files.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns the notices of a job with the rows `train` and `validation` of one input and a class.
std::vector<std::string> NoticesOf(const std::string& train, const std::string& validation,
                                   const std::string& dataset, int classes) {
  v1::JobSpec spec = FromText<v1::JobSpec>(
      absl::StrCat("dataset { csv { targets: TARGET_KIND_CLASS } ", dataset,
                   " } model { input { shape: 1 } layers { dense { units: ", classes, " } } } ",
                   "training { loss { softmax_cross_entropy {} } optimizer { sgd { learning_rate: 0.1 } } ",
                   "global_batch_size: 2 epochs: 1 report { every_steps: 1 } }"));
  const std::string folder = FreshFolder();
  v1::CsvSource& csv = *spec.mutable_dataset()->mutable_csv();
  csv.set_train(WriteFile(folder + "/train.csv", "a,kind\n" + train));
  if (!validation.empty()) csv.set_validation(WriteFile(folder + "/validation.csv", "a,kind\n" + validation));
  TrainingRecorder recorder;
  const absl::Status status = Train(spec, "reference", &recorder);
  EXPECT_TRUE(status.ok()) << status;
  return recorder.notices;
}

constexpr char kPets[] = "1,ant\n2,ant\n3,bee\n4,cow\n5,cow\n";

TEST(ClassNoticesTest, TrainLimitMayLeaveClassesOut) {
  EXPECT_THAT(NoticesOf(kPets, "", "train_limit: 4", 3), IsEmpty());
  EXPECT_THAT(NoticesOf(kPets, "", "train_limit: 3", 3),
              ElementsAre("1 of 3 classes has no training sample within dataset.train_limit (3): 'cow'."));
  EXPECT_THAT(
      NoticesOf(kPets, "", "train_limit: 2", 3),
      ElementsAre("All 2 training samples that dataset.train_limit (2) leaves are of class 'ant': the "
                  "data are in the order of their classes; shuffle them, or raise train_limit."));
}

TEST(ClassNoticesTest, ABatchMayHoldMoreThanTheData) {
  EXPECT_THAT(
      NoticesOf(kPets, "", "train_limit: 1", 3),
      ElementsAre("training.global_batch_size (2) is larger than the training data (1 sample): each "
                  "epoch is one step.",
                  "2 of 3 classes have no training sample within dataset.train_limit (1): 'bee', 'cow'."));
}

TEST(ClassNoticesTest, ValidationLimitMayLeaveClassesOut) {
  EXPECT_THAT(NoticesOf(kPets, kPets, "validation_limit: 4", 3), IsEmpty());
  EXPECT_THAT(NoticesOf(kPets, kPets, "validation_limit: 1", 3),
              ElementsAre("2 of 3 classes have training samples, but no validation sample: 'bee', 'cow'."));
}

TEST(ClassNoticesTest, ASplitMayLeaveClassesOut) {
  EXPECT_THAT(NoticesOf(kPets, "", "validation_split { fraction: 0.4 time_column: 'a' }", 3),
              ElementsAre("1 of 3 classes has validation samples, but no training sample: 'cow'.",
                          "2 of 3 classes have training samples, but no validation sample: 'ant', 'bee'."));
}

TEST(ClassNoticesTest, NamesAtMostFiveClasses) {
  std::string numbers;
  for (int i = 0; i < 9; ++i) absl::StrAppend(&numbers, i, ",", i, "\n");
  EXPECT_THAT(
      NoticesOf(numbers, "", "train_limit: 2", 9),
      ElementsAre("7 of 9 classes have no training sample within dataset.train_limit (2): 2, 3, 4, 5, 6 "
                  "and 2 more."));
}

}  // namespace
}  // namespace tandem
