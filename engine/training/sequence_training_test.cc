// Whole trainings of networks for sequences.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/training/trainer_fixture.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

// Tokens. Seven of eight follow from the token before them.
v1::JobSpec TokenJob(const std::string& layers) {
  return FromText<v1::JobSpec>(absl::StrCat(R"(
    dataset { synthetic { shape: [12] vocabulary: 11 train_samples: 61 validation_samples: 13 } }
    model { input { shape: [12] } )",
                                            layers, R"( }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { adamw { learning_rate: 0.01 } }
      global_batch_size: 8
      epochs: 4
      seed: 7
      report { every_steps: 1 }
    })"));
}

v1::JobSpec Gpt() {
  return TokenJob(R"(
    layers { embedding { vocabulary_size: 11 dimension: 16 } }
    layers { positional_embedding {} }
    layers { residual {
      layers { layer_norm {} }
      layers { multi_head_attention { heads: 2 causal: true } }
    } }
    layers { residual {
      layers { layer_norm {} }
      layers { dense { units: 32 per_position: true activation: ACTIVATION_GELU } }
      layers { dense { units: 16 per_position: true } }
    } }
    layers { layer_norm {} }
    layers { dense { units: 11 per_position: true } })");
}

v1::JobSpec RecurrentNetwork() {
  return TokenJob(R"(
    layers { embedding { vocabulary_size: 11 dimension: 8 } }
    layers { positional_embedding { kind: POSITIONAL_EMBEDDING_KIND_SINUSOIDAL } }
    layers { lstm { units: 12 layers: 2 } }
    layers { dense { units: 11 per_position: true } })");
}

TrainingRecorder Train(v1::JobSpec spec, const std::string& kind, int replicas) {
  TrainingRecorder recorder;
  spec.mutable_replicas()->set_count(replicas);
  const absl::Status status = tandem::Train(spec, kind, &recorder);
  EXPECT_TRUE(status.ok()) << status;
  return recorder;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, size_t count, double tolerance) {
  ASSERT_GE(a.size(), count);
  ASSERT_GE(b.size(), count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_FALSE(!(std::abs(a[i] - b[i]) <= tolerance)) << "step " << i << ": " << a[i] << " and " << b[i];
  }
}

TEST(SequenceTrainingTest, LearnsOnTheOracleWhateverTheReplicas) {
  for (const v1::JobSpec& spec : {Gpt(), RecurrentNetwork()}) {
    const TrainingRecorder one = Train(spec, "reference", 1);
    const TrainingRecorder two = Train(spec, "reference", 2);
    ExpectNear(one.losses(), two.losses(), 20, 1e-8);
    ASSERT_EQ(one.validation_losses().size(), 4);
    // Random guesses have a loss of ln 11, about 2.4.
    EXPECT_NEAR(one.losses().front(), std::log(11.0), 1);
    EXPECT_LT(one.validation_losses().back(), one.validation_losses().front());
    EXPECT_LT(one.validation_losses().back(), 2.2);
  }
}

// The tokens of a batch's parts and replicas have different weights.
TEST(SequenceTrainingTest, IgnoredTokensCountForNothingWhateverTheReplicasAndParts) {
  v1::JobSpec spec = RecurrentNetwork();
  spec.mutable_training()->mutable_loss()->mutable_softmax_cross_entropy()->set_ignore_index(3);
  const TrainingRecorder one = Train(spec, "reference", 1);
  ExpectNear(one.losses(), Train(spec, "reference", 3).losses(), 20, 1e-8);
  spec.mutable_training()->set_accumulation_steps(2);
  ExpectNear(one.losses(), Train(spec, "reference", 1).losses(), 20, 1e-8);
  ExpectNear(one.losses(), Train(spec, "reference", 2).losses(), 20, 1e-8);
}

TEST(SequenceTrainingTest, TheCpuComputesWhatTheOracleComputes) {
  for (const v1::JobSpec& spec : {Gpt(), RecurrentNetwork()}) {
    const TrainingRecorder oracle = Train(spec, "reference", 1);
    for (const int replicas : {1, 2}) {
      ExpectNear(oracle.losses(), Train(spec, "cpu", replicas).losses(), 5, 1e-4);
    }
  }
}

}  // namespace
}  // namespace tandem
