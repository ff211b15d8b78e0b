// Frozen layers in trainings with several replicas.

#include <memory>
#include <string>
#include <vector>

#include "engine/base/faulty_env.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAreArray;

std::vector<float> Floats(FaultyEnv& env, const std::string& path, const std::string& name) {
  const absl::StatusOr<SafetensorsContents> file = ParseSafetensors(*env.ReadFile(path));
  EXPECT_TRUE(file.ok()) << file.status();
  const Tensor* const tensor = file.ok() ? file->Find(name) : nullptr;
  if (tensor == nullptr) {
    ADD_FAILURE() << path << " has no " << name;
    return {};
  }
  return std::vector<float>(tensor->data<float>().begin(), tensor->data<float>().end());
}

// The mean of equal numbers may be another number: 0.1f + 0.1f + 0.1f, divided by 3, is not always 0.1f.
TEST(FrozenReplicasTest, AFrozenLayerKeepsItsBitsBetweenAveragings) {
  // A validation ends the training at step 3.
  const auto job = [](int replicas) {
    v1::JobSpec spec = SmallJob(replicas, "validation { every_steps: 3 } early_stopping { target: 1e9 }");
    spec.add_frozen_layers("conv2d_1");
    return spec;
  };
  FaultyEnv alone;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(job(1), "cpu", &alone, &recorder).status.ok());
  const std::vector<float> weight = Floats(alone, kModel, "conv2d_1.weight");
  for (const bool by_load : {false, true}) {
    v1::JobSpec spec = job(3);
    v1::ParameterAveraging& averaging = *spec.mutable_replicas()->mutable_parameter_averaging();
    averaging.set_every_iterations(5);
    averaging.set_weighted_by_load(by_load);
    if (by_load) {
      for (const double load : {1.0, 0.5, 0.75}) spec.mutable_replicas()->add_worker_load(load);
    }
    FaultyEnv env;
    const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.summary.steps(), 3);
    EXPECT_THAT(Floats(env, kModel, "conv2d_1.weight"), ElementsAreArray(weight));
    // The replicas share it in the checkpoint too.
    EXPECT_THAT(Floats(env, CheckpointPath(3), "shared/conv2d_1.weight"), ElementsAreArray(weight));
    const absl::StatusOr<SafetensorsContents> file = ParseSafetensors(*env.ReadFile(CheckpointPath(3)));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->Find("replica/0/conv2d_1.weight"), nullptr);
    EXPECT_NE(file->Find("replica/1/dense_1.weight"), nullptr);
  }
}

// The parameter tells whether the fork weighs its replicas by their loads.
class FrozenReplicasForkTest : public ::testing::TestWithParam<bool> {};

// Each replica has its own running statistics until a fork freezes them.
TEST_P(FrozenReplicasForkTest, ALayerThatAForkFreezesBeginsWithTheMean) {
  v1::JobSpec spec = SmallJob(2, "epochs: 1");
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01);
  FaultyEnv env;
  Recorder recorder;
  ASSERT_TRUE(TrainWithFiles(spec, "cpu", &env, &recorder).status.ok());
  const std::string name = "batch_norm_1.running_mean";
  const std::vector<float> first = Floats(env, CheckpointPath(8), "replica/0/" + name);
  const std::vector<float> second = Floats(env, CheckpointPath(8), "replica/1/" + name);
  ASSERT_NE(first, second);
  std::vector<float> mean;
  for (size_t i = 0; i < first.size(); ++i) mean.push_back((first[i] + second[i]) / 2);

  spec.add_frozen_layers("batch_norm_1");
  spec.mutable_training()->set_epochs(2);
  // The first job weighed its replicas alike, however the fork weighs them.
  const bool by_load = GetParam();
  if (by_load) {
    v1::ParameterAveraging& averaging = *spec.mutable_replicas()->mutable_parameter_averaging();
    averaging.set_every_iterations(1);
    averaging.set_weighted_by_load(true);
    for (const double load : {1.0, 0.5}) spec.mutable_replicas()->add_worker_load(load);
  }
  const Result result = TrainWithFiles(spec, "cpu", &env, &recorder);
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.steps(), 16);
  EXPECT_THAT(Floats(env, CheckpointPath(16), "shared/" + name), ElementsAreArray(mean));
  EXPECT_THAT(Floats(env, kModel, name), ElementsAreArray(mean));
}

INSTANTIATE_TEST_SUITE_P(ByLoad, FrozenReplicasForkTest, ::testing::Bool());

}  // namespace
}  // namespace tandem
