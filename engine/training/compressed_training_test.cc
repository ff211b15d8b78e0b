// Trainings whose replicas send compressed gradients.

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/faulty_env.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/training/resume_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// A job of 61 samples on several replicas, whose last batch has no sample for some of them.
v1::JobSpec Compressed(int replicas, int rank = 1) {
  v1::JobSpec spec = SmallLenet(replicas);
  spec.mutable_replicas()->mutable_all_reduce()->mutable_compression()->set_rank(rank);
  return spec;
}

Recorder Trained(const v1::JobSpec& spec, const std::string& kind, FaultyEnv* env) {
  Recorder recorder;
  const Result result = TrainWithFiles(spec, kind, env, &recorder);
  EXPECT_TRUE(result.status.ok()) << result.status;
  return recorder;
}

TEST(CompressedTrainingTest, LearnsLikeATrainingWithWholeGradients) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(30);
  FaultyEnv env, compressed_env;
  const Recorder whole = Trained(spec, "cpu", &env);
  spec.mutable_replicas()->mutable_all_reduce()->mutable_compression()->set_rank(1);
  const Recorder compressed = Trained(spec, "cpu", &compressed_env);
  // The first loss precedes all updates.
  EXPECT_EQ(compressed.losses[0], whole.losses[0]);
  EXPECT_NE(compressed.losses[8], whole.losses[8]);
  const double before = whole.losses[0];
  const double whole_loss = whole.epochs.back().validation().loss();
  const double compressed_loss = compressed.epochs.back().validation().loss();
  EXPECT_LT(whole_loss, before / 3);
  EXPECT_LT(compressed_loss, 1.25 * whole_loss);
}

TEST(CompressedTrainingTest, BackendsAgree) {
  for (const int replicas : {2, 6}) {
    v1::JobSpec spec = Compressed(replicas);
    spec.mutable_training()->set_epochs(1);
    spec.mutable_training()->mutable_optimizer()->mutable_nesterov()->set_learning_rate(0.005);
    FaultyEnv env, reference_env;
    const Recorder cpu = Trained(spec, "cpu", &env);
    const Recorder reference = Trained(spec, "reference", &reference_env);
    ASSERT_EQ(cpu.losses.size(), 8);
    ASSERT_EQ(reference.losses.size(), 8);
    for (size_t i = 0; i < cpu.losses.size(); ++i) {
      EXPECT_TRUE(std::abs(cpu.losses[i] - reference.losses[i]) <= 1e-4)
          << replicas << " replicas, step " << i << ": " << cpu.losses[i] << ", not " << reference.losses[i];
    }
  }
}

// Six replicas: the last batch of an epoch, of 5 samples, has none for a replica.
TEST(CompressedTrainingTest, ContinuesBitForBitFromAnyStep) {
  for (const int replicas : {2, 6}) {
    v1::JobSpec spec = Compressed(replicas);
    spec.mutable_training()->set_epochs(2);
    spec.mutable_checkpoints()->set_every_steps(1);
    const Whole whole(spec, "cpu");
    for (const int64_t at : {3, 8, 11}) {
      SCOPED_TRACE(absl::StrCat(replicas, " replicas, step ", at));
      FaultyEnv env;
      Recorder first, second;
      TrainWithFiles(spec, "cpu", &env, &first, [&](Trainer& trainer, int64_t step) {
        if (step == at) trainer.Cancel();
      });
      const Result resumed = TrainWithFiles(spec, "cpu", &env, &second);
      ASSERT_TRUE(resumed.status.ok()) << resumed.status;
      EXPECT_GT(second.started, 0);
      EXPECT_EQ(*env.ReadFile(kModel), whole.model);
    }
  }
}

TEST(CompressedTrainingTest, TheModelHasNoErrorsAndTheCheckpointThoseOfEachReplica) {
  FaultyEnv env;
  Trained(Compressed(2), "cpu", &env);
  EXPECT_THAT(*env.ReadFile(kModel), Not(HasSubstr("compression/")));
  const absl::StatusOr<CheckpointContents> checkpoint = ReadCheckpoint(&env, CheckpointPath(24));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->tensors.count("replica/0/compression/error/dense_1.weight"), 1);
  EXPECT_EQ(checkpoint->tensors.count("replica/1/compression/error/dense_1.weight"), 1);
  EXPECT_EQ(checkpoint->tensors.count("shared/compression/start/dense_1.weight"), 1);
  EXPECT_EQ(checkpoint->tensors.count("replica/0/compression/start/dense_1.weight"), 0);
}

TEST(CompressedTrainingTest, CompressionMayBeginEndOrChangeBetweenAttempts) {
  v1::JobSpec spec = SmallLenet(2);
  spec.mutable_training()->set_epochs(1);
  FaultyEnv env;
  Trained(spec, "cpu", &env);
  v1::JobSpec other_rank = Compressed(2, 2);
  v1::JobSpec other_count = Compressed(3, 1);
  v1::JobSpec alone = Compressed(1, 1);
  v1::JobSpec without = SmallLenet(2);
  int epochs = 1;
  for (v1::JobSpec* next : {&other_rank, &other_count, &alone, &without}) {
    next->mutable_training()->set_epochs(++epochs);
    const Recorder recorder = Trained(*next, "cpu", &env);
    EXPECT_EQ(recorder.started, 8 * (epochs - 1));
    EXPECT_EQ(recorder.losses.size(), 8);
  }
}

TEST(CompressedTrainingTest, ANoticeStatesTheBytes) {
  FaultyEnv env, small_env, single_env;
  EXPECT_THAT(
      Trained(Compressed(2), "cpu", &env).notices,
      Contains("Gradients are compressed to rank 1: those of a step have 0.00 MiB instead of 0.00 MiB."));
  EXPECT_THAT(Trained(Compressed(2, 64), "cpu", &small_env).notices,
              Contains("No gradient is compressed: none is a matrix of which two factors of rank 64 have at "
                       "most half of the numbers."));
  EXPECT_THAT(Trained(Compressed(1), "cpu", &single_env).notices, Not(Contains(HasSubstr("ompressed"))));
}

}  // namespace
}  // namespace tandem
