// Runs random trainings whole, and again with pauses, kills and failing disks. Both must end with the same
// bits. --test_env=FIRST_SEED=N and --test_env=SEEDS=M choose other trainings.

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/checkpoint_file.h"
#include "engine/training/resume_fixture.h"
#include "engine/training/training_state.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

uint64_t Setting(const char* name, uint64_t usual) {
  const char* text = std::getenv(name);
  if (text == nullptr) return usual;
  uint64_t number = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << name << " is " << text;
  return number;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  // Returns a number from `least` to `most`.
  int64_t In(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  bool Chance(int percent) { return In(1, 100) <= percent; }
  // Returns one of the texts.
  std::string Of(const std::vector<std::string>& texts) {
    return texts[In(0, static_cast<int64_t>(texts.size()) - 1)];
  }

 private:
  std::mt19937_64 random_;
};

std::string RandomModel(Dice& dice, bool may_synchronize) {
  const auto norm = [&] {
    return dice.Of({"layers { batch_norm {} }", "layers { group_norm { groups: 1 } }",
                    may_synchronize ? "layers { batch_norm { sync: true } }" : "", ""});
  };
  const auto dropout = [&] { return dice.Of({"layers { dropout { rate: 0.3 } }", ""}); };
  return absl::StrCat(
      R"(input { shape: [1, 6, 6] } layers { name: "first" conv2d { filters: 3 kernel: 3 } })", norm(),
      dropout(), "layers { dense { units: 5 activation: ACTIVATION_TANH } }", dropout(),
      "layers { dense { units: 3 } }");
}

std::string RandomTraining(Dice& dice, bool in_parts) {
  std::string text =
      absl::StrCat("loss { softmax_cross_entropy { ",
                   dice.Of({"", "label_smoothing: 0.1", "class_weights: [1, 0.5, 2]"}), " } } optimizer { ",
                   dice.Of({"sgd { learning_rate: 0.05 }", "nesterov { learning_rate: 0.02 momentum: 0.9 }",
                            "adam { amsgrad: true }", "nadam {}", "rmsprop { momentum: 0.5 centered: true }",
                            "adagrad { learning_rate: 0.02 }", "adadelta {}", "lion { learning_rate: 0.003 }",
                            "lamb {}", "muon { learning_rate: 0.01 }"}),
                   dice.Of({"", " clip { norm: 0.5 }"}), " } schedule { ",
                   dice.Of({"constant {}", "cosine {}", "one_cycle { max_lr: 0.02 }",
                            "plateau { patience: 0 factor: 0.5 }"}),
                   " } report { every_steps: ", dice.In(1, 4), " } global_batch_size: ", dice.In(8, 12),
                   " seed: ", dice.In(0, 99));
  absl::StrAppend(&text, dice.Of({" epochs: 3", " epochs: 4", " steps: 13"}));
  absl::StrAppend(&text, dice.Of({"", " drop_last: true"}), dice.Of({"", " balance_samples: true"}));
  absl::StrAppend(&text, dice.Of({"", absl::StrCat(" validation { every_steps: ", dice.In(1, 5), " }")}));
  absl::StrAppend(&text, dice.Of({"", absl::StrCat(" early_stopping { patience: ", dice.In(1, 3), " }")}));
  absl::StrAppend(&text, dice.Of({"", " weight_average { decay: 0.9 }"}),
                  in_parts ? " accumulation_steps: 2" : "");
  absl::StrAppend(&text, " best_model { keep_weights: true }");
  return text;
}

v1::JobSpec RandomJob(Dice& dice) {
  const bool averages = dice.Chance(50);
  const bool in_parts = dice.Chance(20);
  const std::string model = RandomModel(dice, !averages && !in_parts);
  std::string replicas;
  // A replica may have no samples of an epoch's last batch.
  if (averages) {
    replicas = absl::StrCat("parameter_averaging { every_iterations: ", dice.In(1, 4),
                            " average_optimizer_state: ", dice.Of({"true", "false"}),
                            " weighted_by_load: ", dice.Of({"true", "false"}), " }");
  }
  absl::StrAppend(&replicas, " worker_load: ", dice.Of({"[1]", "[1, 1]", "[1, 0, 1]", "[1, 0.5, 0.75]"}));
  absl::StrAppend(&replicas, " prefetch: ", dice.In(0, 2));
  v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat(
      "dataset { synthetic { shape: [1, 6, 6] classes: 3 train_samples: ", dice.In(21, 40),
      " validation_samples: ", dice.Of({"0", "11"}), " } ",
      dice.Of({"", "augmentation { translation { x: 1 y: 2 } }", "augmentation { horizontal_flip {} }"}),
      " } model { ", model, " } training { ", RandomTraining(dice, in_parts), " } replicas { ", replicas,
      " } checkpoints { every_steps: ", dice.In(2, 7), " keep_best: ", dice.Of({"true", "false"}),
      " keep_last: ", dice.In(1, 2), " }"));
  if (dice.Chance(20)) spec.add_frozen_layers("first");
  return spec;
}

// Runs the training until it ends. It ends early a few times.
absl::Status TrainInParts(const v1::JobSpec& spec, int64_t steps, Dice& dice, FaultyEnv* env) {
  for (int64_t part = dice.In(1, 4);; --part) {
    const bool pauses = dice.Chance(40);
    const int64_t last = dice.In(1, steps);
    const int changes = static_cast<int>(dice.In(0, 12));
    Recorder recorder;
    const Result result = TrainWithFiles(spec, "cpu", env, &recorder, [&](Trainer& trainer, int64_t step) {
      if (part == 0 || step < last) return;
      if (pauses) return trainer.Pause();
      env->FailAfter(changes);
      trainer.Cancel();
    });
    if (result.status.ok() && result.outcome.reason != v1::STATE_REASON_PAUSE_REQUESTED) return result.status;
    if (!result.status.ok() && (part == 0 || !absl::IsCancelled(result.status))) return result.status;
    if (!pauses) env->CutPower(static_cast<FaultyEnv::Unsynced>(dice.In(0, 2)), dice.In(0, 1000));
  }
}

// Returns the newest checkpoint: its step, its state without times, and its tensors' bytes.
std::vector<std::string> NewestCheckpoint(FaultyEnv* env) {
  const std::string file = ListCheckpointFiles(env, kFolder)->at(0);
  const absl::StatusOr<CheckpointContents> contents = ReadCheckpoint(env, absl::StrCat(kFolder, "/", file));
  EXPECT_TRUE(contents.ok()) << contents.status();
  if (!contents.ok()) return {};
  absl::StatusOr<TrainingState> state = TrainingStateFromJson(contents->state);
  EXPECT_TRUE(state.ok()) << state.status();
  if (!state.ok()) return {};
  state->epoch_seconds = 0;
  for (Measurement& share : state->epoch_shares) share.data_wait_seconds = share.reduce_seconds = 0;
  state->summary.clear_training_seconds();
  state->summary.clear_validation_seconds();
  state->summary.clear_images_per_second();
  std::vector<std::string> parts = {file, ToJson(*state)};
  for (const auto& [name, tensor] : contents->tensors) {
    parts.push_back(name);
    parts.emplace_back(static_cast<const char*>(tensor.raw_data()), tensor.bytes());
  }
  return parts;
}

TEST(RandomResumeTest, AnInterruptedTrainingEndsAsAWholeOne) {
  const uint64_t first = Setting("FIRST_SEED", 1);
  for (uint64_t seed = first; seed < first + Setting("SEEDS", 40); ++seed) {
    Dice dice(seed);
    const v1::JobSpec spec = RandomJob(dice);
    SCOPED_TRACE(absl::StrCat("FIRST_SEED=", seed, " SEEDS=1 ", spec.ShortDebugString()));
    FaultyEnv whole;
    Recorder recorder;
    const Result result = TrainWithFiles(spec, "cpu", &whole, &recorder);
    ASSERT_TRUE(result.status.ok()) << result.status;
    FaultyEnv env;
    const absl::Status status = TrainInParts(spec, result.summary.steps(), dice, &env);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(*env.ReadFile(kModel), *whole.ReadFile(kModel));
    EXPECT_EQ(*env.ReadFile(kBest), *whole.ReadFile(kBest));
    EXPECT_EQ(NewestCheckpoint(&env), NewestCheckpoint(&whole));
    if (spec.checkpoints().keep_best()) {
      EXPECT_TRUE(env.ReadFile(CheckpointPath(result.summary.best().step())).ok());
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tandem
