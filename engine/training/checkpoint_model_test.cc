// Compares the models of checkpoints with the models that paused trainings write from memory.
#include "engine/training/checkpoint_model.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/faulty_env.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/trained_model.h"
#include "engine/training/training_state.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// The files of a training that paused some steps after its start.
struct Paused {
  FaultyEnv env;
  std::string checkpoint;  // The path.
  std::string model;       // The content of model.safetensors.
};

void PauseAfter(int64_t step, const v1::JobSpec& spec, const std::string& kind, Paused* paused) {
  Recorder recorder;
  Trainer::Options options = OptionsFor(spec, kind, &recorder);
  options.checkpoint_folder = kFolder;
  options.env = &paused->env;
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
  ASSERT_TRUE(trainer.ok()) << trainer.status();
  recorder.on_step = [&](int64_t now) {
    if (now == step) (*trainer)->Pause();
  };
  ASSERT_TRUE((*trainer)->Run().ok());
  ASSERT_TRUE((*trainer)->SaveModel(kModel).ok());
  paused->checkpoint = CheckpointPath((*trainer)->Summary().steps());
  paused->model = *paused->env.ReadFile(kModel);
}

v1::JobSpec WithReplicas(v1::JobSpec spec, const std::string& replicas) {
  *spec.mutable_replicas() = FromText<v1::Replicas>(replicas);
  return spec;
}

struct Case {
  std::string name;
  v1::JobSpec spec;
  std::string kind = "cpu";
};

std::vector<Case> Cases() {
  const std::string averaging =
      "count: 3 worker_load: [1, 0.5, 0.25] parameter_averaging { every_iterations: 5 ";
  v1::JobSpec frozen = SmallJob(2, "weight_average { decay: 0.9 }");
  frozen.add_frozen_layers("conv2d_1");
  frozen.add_frozen_layers("batch_norm_1");
  return {
      {"a single replica", SmallJob(1)},
      {"statistics of replicas", SmallJob(3)},
      {"moving averages", SmallJob(3, "weight_average { decay: 0.9 }")},
      {"float64", SmallJob(2, "weight_average { decay: 0.9 }"), "reference"},
      {"frozen layers", frozen},
      {"between averagings", WithReplicas(SmallJob(3), averaging + "}")},
      {"by load", WithReplicas(SmallJob(3), averaging + "weighted_by_load: true }")},
      {"own averages of weights", WithReplicas(SmallJob(3, "weight_average { decay: 0.9 }"),
                                               averaging + "average_optimizer_state: false }")},
  };
}

TEST(CheckpointModelTest, IsTheModelOfATrainingThatPausedThere) {
  for (const Case& one : Cases()) {
    SCOPED_TRACE(one.name);
    // Step 6 or 7 is between averagings. Step 8 ends the epoch.
    for (const int64_t step : {5, 7}) {
      Paused paused;
      PauseAfter(step, one.spec, one.kind, &paused);
      const auto model = CheckpointModel::Open(&paused.env, paused.checkpoint);
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ((*model)->size_bytes(), static_cast<int64_t>(paused.model.size()));
      EXPECT_EQ(*(*model)->Read(0, (*model)->size_bytes()), paused.model);
    }
  }
}

TEST(CheckpointModelTest, IsReadInPiecesAfterItsRemoval) {
  Paused paused;
  PauseAfter(6, SmallJob(2), "cpu", &paused);
  const auto model = CheckpointModel::Open(&paused.env, paused.checkpoint);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_TRUE(paused.env.RemoveFile(paused.checkpoint).ok());
  std::string bytes;
  const int64_t size = (*model)->size_bytes();
  for (int64_t offset = 0; offset < size; offset += 7) {
    const absl::StatusOr<std::string> piece = (*model)->Read(offset, 7);
    ASSERT_TRUE(piece.ok()) << piece.status();
    ASSERT_EQ(static_cast<int64_t>(piece->size()), std::min<int64_t>(7, size - offset));
    bytes += *piece;
  }
  EXPECT_EQ(bytes, paused.model);
  EXPECT_EQ(*(*model)->Read(size, 7), "");
}

// Returns the path of a file with this content.
std::string OnDisk(const std::string& name, const std::string& content) {
  std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

TEST(CheckpointModelTest, ATrainedModelComesFromEitherFile) {
  Paused paused;
  const v1::JobSpec spec = SmallJob(2, "weight_average { decay: 0.9 }");
  PauseAfter(6, spec, "cpu", &paused);
  const absl::StatusOr<TrainedModel> of_model =
      ReadTrainedModel(spec, OnDisk("model.safetensors", paused.model));
  ASSERT_TRUE(of_model.ok()) << of_model.status();
  const std::string checkpoint = *paused.env.ReadFile(paused.checkpoint);
  const absl::StatusOr<TrainedModel> of_checkpoint =
      ReadTrainedModel(spec, OnDisk("checkpoint.safetensors", checkpoint));
  ASSERT_TRUE(of_checkpoint.ok()) << of_checkpoint.status();
  ASSERT_EQ(of_checkpoint->weights.size(), 8);
  for (const auto& [name, weights] : of_model->weights) {
    EXPECT_THAT(of_checkpoint->weights.at(name).data<float>(), ElementsAreArray(weights.data<float>()))
        << name;
  }
  EXPECT_EQ(of_checkpoint->trained_on.normalization.scale, of_model->trained_on.normalization.scale);

  std::string damaged = checkpoint;
  damaged.back() ^= 1;
  const absl::Status status = ReadTrainedModel(spec, OnDisk("damaged.safetensors", damaged)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("was changed"));
  v1::JobSpec other = spec;
  other.mutable_model()->mutable_layers(2)->mutable_dense()->set_units(5);
  const absl::Status misfit = ReadTrainedModel(other, OnDisk("checkpoint.safetensors", checkpoint)).status();
  EXPECT_TRUE(absl::IsDataLoss(misfit)) << misfit;
  EXPECT_THAT(std::string(misfit.message()), HasSubstr("dense_1.weight"));
  EXPECT_TRUE(absl::IsNotFound(ReadTrainedModel(spec, ::testing::TempDir() + "none.safetensors").status()));
}

TEST(CheckpointModelTest, UnsoundFilesAreRefused) {
  Paused paused;
  PauseAfter(6, SmallJob(3), "cpu", &paused);
  const auto error_of = [&](const std::string& path) {
    const absl::Status status = CheckpointModel::Open(&paused.env, path).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(path));
    return status;
  };
  EXPECT_TRUE(absl::IsNotFound(CheckpointModel::Open(&paused.env, "/d/none").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(error_of(kModel)));

  const CheckpointContents contents = *ReadCheckpoint(&paused.env, paused.checkpoint);
  constexpr char kOther[] = "/d/other.safetensors";
  const auto error_with = [&](const TrainingState& state, const std::map<std::string, Tensor>& tensors) {
    const std::vector<NamedTensor> list(tensors.begin(), tensors.end());
    EXPECT_TRUE(WriteCheckpoint(&paused.env, kOther, ToJson(state), list).ok());
    return error_of(kOther);
  };
  const TrainingState state = *TrainingStateFromJson(contents.state);
  std::map<std::string, Tensor> tensors = contents.tensors;
  ASSERT_EQ(tensors.erase("replica/1/batch_norm_1.running_mean"), 1);
  absl::Status status = error_with(state, tensors);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("batch_norm_1.running_mean of replica 0, and not of replica 1"));
  tensors = contents.tensors;
  tensors["replica/1/batch_norm_1.running_mean"] = Tensor(DType::kFloat32, Shape({2}));
  EXPECT_THAT(std::string(error_with(state, tensors).message()),
              HasSubstr("the type or shape of replica/1/batch_norm_1.running_mean is wrong"));
  tensors = contents.tensors;
  tensors["shared/dense_1.bias"] = Tensor(DType::kInt64, Shape({4}));
  EXPECT_TRUE(absl::IsDataLoss(error_with(state, tensors)));
  TrainingState changed = state;
  changed.epoch_shares.clear();
  EXPECT_THAT(std::string(error_with(changed, contents.tensors).message()), HasSubstr("of no replicas"));
  changed = state;
  changed.model.erase("job");
  EXPECT_THAT(std::string(error_with(changed, contents.tensors).message()), HasSubstr("job cannot be read"));
}

}  // namespace
}  // namespace tandem
