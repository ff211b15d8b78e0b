// Trainings that continue from another job's checkpoint.

#include <string>

#include "engine/base/faulty_env.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

// Trains `spec` until it pauses soon after `step`. Returns the step of its checkpoint.
int64_t PauseAt(int64_t step, const v1::JobSpec& spec, const std::string& kind, FaultyEnv* env,
                Recorder* recorder) {
  const Result paused = TrainWithFiles(spec, kind, env, recorder, [&](Trainer& trainer, int64_t done) {
    if (done == step) trainer.Pause();
  });
  EXPECT_EQ(paused.outcome.reason, v1::STATE_REASON_PAUSE_REQUESTED) << paused.status;
  return paused.summary.checkpoint_step();
}

// Continues from the checkpoint of step `step` in `from`, with files of its own.
Result Continue(FaultyEnv& from, int64_t step, const v1::JobSpec& spec, const std::string& kind,
                Recorder* recorder) {
  FaultyEnv env;
  const absl::Status written = WriteFileAtomically(&env, CheckpointPath(step), [&](WritableFile& file) {
    return file.Append(*from.ReadFile(CheckpointPath(step)));
  });
  EXPECT_TRUE(written.ok()) << written;
  return TrainWithFiles(spec, kind, &env, recorder);
}

// Two replicas that step together are one replica with the whole batch, as long as no layer looks at a batch.
TEST(ForkedTrainingTest, ReplicasThatSteppedAloneBeginAlikeWhereTheyStepTogether) {
  v1::JobSpec alone = SmallJob(2);
  alone.mutable_model()->mutable_layers()->DeleteSubrange(1, 1);  // batch_norm
  v1::ParameterAveraging& averaging = *alone.mutable_replicas()->mutable_parameter_averaging();
  averaging.set_every_iterations(100);
  averaging.set_average_optimizer_state(false);
  FaultyEnv env;
  Recorder first;
  const int64_t step = PauseAt(3, alone, "reference", &env, &first);

  v1::JobSpec together = alone;
  together.mutable_replicas()->mutable_all_reduce();
  v1::JobSpec single = together;
  single.mutable_replicas()->set_count(1);
  Recorder of_two, of_one;
  ASSERT_TRUE(Continue(env, step, together, "reference", &of_two).status.ok());
  ASSERT_TRUE(Continue(env, step, single, "reference", &of_one).status.ok());
  EXPECT_THAT(of_two.notices, Contains(HasSubstr("is of replicas that stepped alone")));
  ASSERT_EQ(of_two.losses.size(), 32 - step);
  ASSERT_EQ(of_one.losses.size(), 32 - step);
  for (size_t i = 0; i < of_one.losses.size(); ++i)
    EXPECT_NEAR(of_two.losses[i], of_one.losses[i], 1e-9) << i;
}

// The plateau of SmallJob halves the rate again and again.
TEST(ForkedTrainingTest, APlateauKeepsItsShareOfAnotherLearningRate) {
  v1::JobSpec spec = SmallJob(1);
  FaultyEnv env;
  Recorder first;
  const int64_t step = PauseAt(26, spec, "cpu", &env, &first);
  ASSERT_LT(first.rates.back(), 0.01);

  v1::JobSpec slower = spec;
  slower.mutable_training()->mutable_optimizer()->mutable_adam()->set_learning_rate(0.001);
  Recorder of_slower;
  ASSERT_TRUE(Continue(env, step, slower, "cpu", &of_slower).status.ok());
  EXPECT_NEAR(of_slower.rates.front(), first.rates.back() / 10, 1e-15);

  v1::JobSpec scaled = spec;
  scaled.mutable_training()->mutable_schedule()->set_linear_scaling(true);
  scaled.mutable_replicas()->set_count(3);
  Recorder of_scaled;
  ASSERT_TRUE(Continue(env, step, scaled, "cpu", &of_scaled).status.ok());
  EXPECT_NEAR(of_scaled.rates.front(), first.rates.back() * 3, 1e-15);

  Recorder of_same;
  ASSERT_TRUE(Continue(env, step, spec, "cpu", &of_same).status.ok());
  EXPECT_EQ(of_same.rates.front(), first.rates.back());
}

}  // namespace
}  // namespace tandem
