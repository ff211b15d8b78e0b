// Reports of parameters after each epoch.

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/tensor/tensor.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::JobSpec Reporting(int replicas, int epochs) {
  v1::JobSpec spec = SmallLenet(replicas);
  spec.mutable_training()->set_epochs(epochs);
  spec.mutable_training()->set_report_parameters(true);
  return spec;
}

// Trains `epochs` epochs, and returns the model's tensors.
std::map<std::string, Tensor> Model(const v1::JobSpec& spec, const std::string& kind,
                                    TrainingRecorder* recorder) {
  const std::string path = testing::TempDir() + "/parameter_report.safetensors";
  const absl::Status trained = Train(spec, kind, recorder, path);
  EXPECT_TRUE(trained.ok()) << trained;
  absl::StatusOr<SafetensorsContents> contents = ReadSafetensors(path);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return std::move(contents->tensors);
}

double Mean(absl::Span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(ParameterReportTest, EachEpochTellsSizesAndChanges) {
  for (const int replicas : {1, 2}) {
    for (const std::string kind : {"cpu", "reference"}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", replicas));
      TrainingRecorder one, two;
      const std::map<std::string, Tensor> before = Model(Reporting(replicas, 1), kind, &one);
      const std::map<std::string, Tensor> after = Model(Reporting(replicas, 2), kind, &two);
      ASSERT_THAT(two.parameters, SizeIs(2));
      const v1::ParameterReport& report = two.parameters[1];
      EXPECT_EQ(report.epoch(), 2);
      EXPECT_EQ(report.step(), 16);
      EXPECT_THAT(report.parameters(), SizeIs(after.size()));
      for (const v1::ParameterStatistics& found : report.parameters()) {
        SCOPED_TRACE(found.name());
        const absl::Span<const float> old = before.at(found.name()).data<float>();
        const absl::Span<const float> now = after.at(found.name()).data<float>();
        const double mean = Mean(now);
        double variance = 0, norm = 0, change = 0;
        for (size_t i = 0; i < now.size(); ++i) {
          variance += std::pow(now[i] - mean, 2) / static_cast<double>(now.size());
          norm += std::pow(now[i], 2);
          change += std::pow(now[i] - old[i], 2);
        }
        EXPECT_NEAR(found.mean(), mean, 1e-6);
        EXPECT_NEAR(found.standard_deviation(), std::sqrt(variance), 1e-6);
        EXPECT_NEAR(found.relative_change(), std::sqrt(change / norm), 1e-5);
        EXPECT_GT(found.relative_change(), 0);
      }
    }
  }
}

TEST(ParameterReportTest, AFrozenLayerDoesNotChange) {
  v1::JobSpec spec = Reporting(1, 1);
  spec.add_frozen_layers("conv2d_1");
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  ASSERT_THAT(recorder.parameters, SizeIs(1));
  EXPECT_EQ(recorder.parameters[0].parameters(0).name(), "conv2d_1.weight");
  EXPECT_EQ(recorder.parameters[0].parameters(0).relative_change(), 0);
}

TEST(ParameterReportTest, AnEpochThatEarlyStoppingCutsShortIsReported) {
  v1::JobSpec spec = Reporting(1, 5);
  spec.mutable_training()->mutable_validation()->set_every_steps(3);
  spec.mutable_training()->mutable_early_stopping()->set_target(1e9);
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(spec, "cpu", &recorder).ok());
  ASSERT_THAT(recorder.epochs, SizeIs(1));
  ASSERT_THAT(recorder.parameters, SizeIs(1));
  EXPECT_EQ(recorder.parameters[0].epoch(), recorder.epochs[0].epoch());
  EXPECT_EQ(recorder.parameters[0].step(), 3);
}

TEST(ParameterReportTest, OtherJobsReportNone) {
  TrainingRecorder recorder;
  ASSERT_TRUE(Train(SmallLenet(1), "cpu", &recorder).ok());
  EXPECT_THAT(recorder.parameters, IsEmpty());
}

}  // namespace
}  // namespace tandem
