#include "engine/training/checkpoint_fit.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/error_reason.h"
#include "engine/base/faulty_env.h"
#include "engine/base/field_violations.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// The data of SmallJob.
DatasetInfo Data() {
  DatasetInfo data;
  data.shape = Shape({1, 8, 8});
  data.classes = 4;
  data.train_samples = 61;
  data.validation_samples = 27;
  return data;
}

// Returns the header of the job's last checkpoint.
SafetensorsHeader CheckpointOf(const v1::JobSpec& spec) {
  FaultyEnv env;
  Recorder recorder;
  EXPECT_TRUE(TrainWithFiles(spec, "cpu", &env, &recorder).status.ok());
  const absl::StatusOr<SafetensorsContents> contents =
      ParseSafetensors(*env.ReadFile(CheckpointPath(recorder.checkpoints.back())));
  EXPECT_TRUE(contents.ok()) << contents.status();
  SafetensorsHeader header;
  header.metadata = contents->metadata;
  for (const auto& [name, tensor] : contents->tensors) {
    header.tensors[name] = {.dtype = tensor.dtype(), .shape = tensor.shape()};
  }
  return header;
}

// Returns "field: fault" of the only violation.
std::string FaultOf(const v1::JobSpec& spec, const SafetensorsHeader& checkpoint) {
  const absl::Status status = CheckCheckpointFits(spec, Data(), checkpoint);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const std::vector<FieldViolation> faults = GetFieldViolations(status);
  EXPECT_EQ(faults.size(), 1);
  return faults.empty() ? "" : absl::StrCat(faults[0].field, ": ", faults[0].description);
}

TEST(CheckpointFitTest, OneOfTheJobFits) {
  const v1::JobSpec spec = SmallJob(2, "epochs: 1 weight_average {} accumulation_steps: 2");
  const SafetensorsHeader checkpoint = CheckpointOf(spec);
  EXPECT_TRUE(CheckCheckpointFits(spec, Data(), checkpoint).ok());
  EXPECT_EQ(StateOfCheckpoint(checkpoint)->step, 8);
  // Changes that a checkpoint does not show.
  v1::JobSpec other = spec;
  other.mutable_replicas()->set_count(5);
  other.mutable_training()->set_epochs(9);
  other.mutable_training()->set_global_batch_size(16);
  other.mutable_training()->set_accumulation_steps(1);
  other.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.5);
  other.mutable_training()->clear_schedule();
  EXPECT_TRUE(CheckCheckpointFits(other, Data(), checkpoint).ok());
  // Loss scaling may begin or end with the new training.
  other.mutable_training()->set_precision(v1::PRECISION_FLOAT16);
  EXPECT_TRUE(CheckCheckpointFits(other, Data(), checkpoint).ok());
  SafetensorsHeader scaled = checkpoint;
  scaled.tensors["shared/loss_scaling/scale"] = {.dtype = DType::kFloat32, .shape = Shape()};
  EXPECT_TRUE(CheckCheckpointFits(spec, Data(), scaled).ok());
  v1::JobSpec averaging = SmallJob(2, "steps: 7");
  averaging.mutable_replicas()->mutable_parameter_averaging()->set_every_iterations(5);
  EXPECT_TRUE(CheckCheckpointFits(averaging, Data(), CheckpointOf(averaging)).ok());
}

TEST(CheckpointFitTest, WhatDiffersIsNamed) {
  const v1::JobSpec spec = SmallJob(1, "epochs: 1");
  const SafetensorsHeader checkpoint = CheckpointOf(spec);
  v1::JobSpec wider = spec;
  wider.mutable_model()->mutable_layers(0)->mutable_conv2d()->set_filters(4);
  EXPECT_THAT(
      FaultOf(wider, checkpoint),
      HasSubstr("model: does not fit the checkpoint: conv2d_1.weight is float32 [3, 1, 3, 3] there and "
                "float32 [4, 1, 3, 3] here"));
  v1::JobSpec longer = spec;
  longer.mutable_model()->add_layers()->mutable_dense()->set_units(4);
  EXPECT_THAT(FaultOf(longer, checkpoint), HasSubstr("it has no dense_2.weight"));
  v1::JobSpec shorter = spec;
  shorter.mutable_model()->mutable_layers()->DeleteSubrange(1, 1);
  EXPECT_THAT(FaultOf(shorter, checkpoint), HasSubstr("it has batch_norm_1.running_mean too"));
  v1::JobSpec other = spec;
  other.mutable_training()->mutable_optimizer()->mutable_momentum()->set_learning_rate(0.1);
  EXPECT_THAT(FaultOf(other, checkpoint), HasSubstr("training.optimizer: does not fit the checkpoint: "));
  v1::JobSpec averaged = spec;
  averaged.mutable_training()->mutable_weight_average();
  EXPECT_THAT(FaultOf(averaged, checkpoint),
              HasSubstr("training.weight_average: does not fit the checkpoint: "
                        "it has no ema/"));
  v1::JobSpec frozen = spec;
  frozen.add_frozen_layers("conv2d_1");
  EXPECT_THAT(FaultOf(frozen, checkpoint), HasSubstr("frozen_layers: does not fit the checkpoint: it has "));
  v1::JobSpec precise = spec;
  precise.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_REFERENCE);
  EXPECT_THAT(FaultOf(precise, checkpoint), HasSubstr("float64"));
}

// Returns "" if steps are left after `step` steps in epochs of `steps_per_epoch`.
std::string NothingLeft(const v1::JobSpec& spec, int64_t step, int64_t steps_per_epoch) {
  TrainingState state;
  state.step = step;
  state.steps_per_epoch = steps_per_epoch;
  const absl::Status status = CheckSomethingIsLeft(spec, Data(), state);
  if (status.ok()) return "";
  EXPECT_EQ(GetReason(status), "NOTHING_TO_TRAIN");
  return std::string(status.message());
}

TEST(CheckpointFitTest, WhatIsLeftFollowsFromTheEpochsThatWereTrained) {
  // An epoch of 61 samples is 8 steps.
  v1::JobSpec spec = SmallJob(1, "epochs: 3");
  EXPECT_EQ(NothingLeft(spec, 23, 8), "");
  EXPECT_THAT(NothingLeft(spec, 24, 8), HasSubstr("of step 24 has 3 epochs: nothing is left to train"));
  // Epochs of 16 steps, as after a change to larger batches or less data.
  EXPECT_EQ(NothingLeft(spec, 32, 16), "");
  EXPECT_THAT(NothingLeft(spec, 48, 16), HasSubstr("has 3 epochs"));
  spec.mutable_training()->set_epochs(4);
  EXPECT_EQ(NothingLeft(spec, 48, 16), "");
  // Epochs of 2 steps, as after a change to smaller batches.
  EXPECT_THAT(NothingLeft(spec, 8, 2), HasSubstr("has 4 epochs"));
  spec = SmallJob(1, "steps: 48");
  EXPECT_EQ(NothingLeft(spec, 47, 16), "");
  EXPECT_THAT(NothingLeft(spec, 48, 16), HasSubstr("training.steps: is 48"));
}

TEST(CheckpointFitTest, WhatIsNone) { EXPECT_TRUE(absl::IsDataLoss(StateOfCheckpoint({}).status())); }

}  // namespace
}  // namespace tandem
