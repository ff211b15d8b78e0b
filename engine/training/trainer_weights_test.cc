// Batches that are computed in parts, and moving averages of the weights.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/backends/device_factory.h"
#include "engine/base/faulty_env.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "engine/checkpoint/safetensors_reader.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr char kModel[] = "/d/model.safetensors";

// 61 samples: 7 batches of 8 and a batch of 5 in an epoch.
v1::JobSpec SmallJob(int replicas, const std::string& training, const std::string& layer = "") {
  v1::JobSpec spec = FromText<v1::JobSpec>(absl::StrCat(R"(
    dataset {
      synthetic { shape: [1, 8, 8] classes: 4 train_samples: 61 validation_samples: 27 }
    }
    model {
      input { shape: [1, 8, 8] }
      layers { conv2d { filters: 3 kernel: 3 activation: ACTIVATION_RELU } }
      )",
                                                        layer, R"(
      layers { dense { units: 4 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { momentum { learning_rate: 0.05 weight_decay: 0.01 } }
      global_batch_size: 8
      seed: 7
      report { every_steps: 1 }
      )",
                                                        training, "}"));
  spec.mutable_replicas()->set_count(replicas);
  return spec;
}

struct Result {
  TrainingRecorder recorder;
  SafetensorsContents model;
};

Result Train(const v1::JobSpec& spec, const std::string& kind) {
  Result result;
  Trainer::Options options = OptionsFor(spec, kind, &result.recorder);
  FaultyEnv env;
  options.env = &env;
  absl::StatusOr<std::unique_ptr<Trainer>> trainer = Trainer::Create(std::move(options));
  EXPECT_TRUE(trainer.ok()) << trainer.status();
  if (!trainer.ok()) return result;
  const absl::Status status = (*trainer)->Run();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE((*trainer)->SaveModel(kModel).ok());
  result.model = *ParseSafetensors(*env.ReadFile(kModel));
  return result;
}

void ExpectNear(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_FALSE(!(std::abs(a[i] - b[i]) <= tolerance)) << i << ": " << a[i] << " and " << b[i];
  }
}

TEST(TrainerWeightsTest, ABatchInPartsIsTheSameBatch) {
  for (const char* kind : {"reference", "cpu"}) {
    const double tolerance = std::string(kind) == "cpu" ? 1e-4 : 1e-10;
    const Result whole = Train(SmallJob(1, "epochs: 2"), kind);
    for (const int replicas : {1, 2, 3}) {
      for (const int parts : {2, 8 / 3, 8 / replicas}) {
        if (parts > 8 / replicas) continue;
        SCOPED_TRACE(absl::StrCat(kind, " ", replicas, " ", parts));
        const Result in_parts =
            Train(SmallJob(replicas, absl::StrCat("epochs: 2 accumulation_steps: ", parts)), kind);
        ExpectNear(in_parts.recorder.losses(), whole.recorder.losses(), tolerance);
        ExpectNear(in_parts.recorder.validation_losses(), whole.recorder.validation_losses(), tolerance);
        // Sums of gradients are not a part of a model.
        EXPECT_EQ(in_parts.model.tensors.size(), 4);
      }
    }
  }
}

// Augmentation, mixing and dropout of a sample depend on its place in the batch or in the data, not on parts.
TEST(TrainerWeightsTest, PartsDrawWhatTheWholeBatchDraws) {
  v1::JobSpec spec = SmallJob(1, "epochs: 2", "layers { dropout { rate: 0.5 } }");
  for (const char* augmentation : {"", "crop { padding: 2 }", "mixup {}", "cutmix {}"}) {
    spec.mutable_dataset()->clear_augmentation();
    if (*augmentation != '\0') {
      ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(augmentation,
                                                                spec.mutable_dataset()->add_augmentation()));
    }
    spec.mutable_training()->clear_accumulation_steps();
    spec.mutable_replicas()->set_count(1);
    const Result whole = Train(spec, "reference");
    for (const int replicas : {1, 2, 3}) {
      // Parts of equal and of different sizes.
      for (const int parts : {2, 8 / 3, 8 / replicas}) {
        if (parts > 8 / replicas) continue;
        SCOPED_TRACE(absl::StrCat(augmentation, " ", replicas, " ", parts));
        spec.mutable_replicas()->set_count(replicas);
        spec.mutable_training()->set_accumulation_steps(parts);
        ExpectNear(Train(spec, "reference").recorder.losses(), whole.recorder.losses(), 1e-9);
        const std::vector<double> losses = Train(spec, "cpu").recorder.losses();
        EXPECT_NEAR(losses[0], whole.recorder.losses()[0], 1e-4);
      }
    }
  }
}

TEST(TrainerWeightsTest, TheMovingAverageOfTheWeightsIsTheModel) {
  // By hand: the decay of step 3 is the smaller of 3 / 12 and the job's decay.
  for (const auto& [said, decay] : {std::pair(0.125, 0.125), std::pair(0.75, 0.25)}) {
    for (const auto& [kind, replicas] : {std::pair("reference", 1), std::pair("cpu", 2)}) {
      SCOPED_TRACE(absl::StrCat(kind, " ", replicas, " ", said));
      const std::string average = absl::StrCat(" weight_average { decay: ", said, " }");
      const Result two = Train(SmallJob(replicas, "steps: 2" + average), kind);
      const Result three = Train(SmallJob(replicas, "steps: 3" + average), kind);
      const Result plain = Train(SmallJob(replicas, "steps: 3"), kind);
      EXPECT_EQ(three.recorder.losses(), plain.recorder.losses());
      ASSERT_EQ(three.model.tensors.size(), plain.model.tensors.size());
      for (const auto& [name, tensor] : three.model.tensors) {
        const absl::Span<const float> before = two.model.Find(name)->data<float>();
        const absl::Span<const float> last = plain.model.Find(name)->data<float>();
        for (size_t i = 0; i < before.size(); ++i) {
          EXPECT_NEAR(tensor.data<float>()[i], decay * before[i] + (1 - decay) * last[i], 1e-6) << name;
        }
      }
    }
  }
}

TEST(TrainerWeightsTest, ValidationIsThatOfTheAverage) {
  const Result plain = Train(SmallJob(2, "epochs: 2"), "cpu");
  const Result average = Train(SmallJob(2, "epochs: 2 weight_average { decay: 0.999999999 }"), "cpu");
  EXPECT_EQ(average.recorder.losses(), plain.recorder.losses());
  EXPECT_NE(average.recorder.validation_losses()[0], plain.recorder.validation_losses()[0]);
  // With decay 0 the average equals the weights.
  const Result same = Train(SmallJob(2, "epochs: 2 weight_average { decay: 0 }"), "cpu");
  ExpectNear(same.recorder.validation_losses(), plain.recorder.validation_losses(), 1e-6);
}

// Like PyTorch's Embedding, the row of padding_idx is zero and gets no gradient.
TEST(TrainerWeightsTest, TheVectorOfThePaddingTokenIsZero) {
  v1::JobSpec spec;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
    dataset { synthetic { shape: [6] vocabulary: 5 train_samples: 24 } }
    model {
      input { shape: [6] }
      layers { embedding { vocabulary_size: 5 dimension: 3 padding_token: 2 } }
      layers { dense { units: 5 per_position: true } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { adamw { learning_rate: 0.01 } }
      global_batch_size: 8
      epochs: 2
      seed: 7
    })",
                                                            &spec));
  for (const int replicas : {1, 2}) {
    spec.mutable_replicas()->set_count(replicas);
    const Result result = Train(spec, "cpu");
    const Tensor* const weight = result.model.Find("embedding_1.weight");
    ASSERT_NE(weight, nullptr);
    for (int64_t row = 0; row < 5; ++row) {
      for (int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(weight->data<float>()[3 * row + i] == 0, row == 2) << row << " " << i;
      }
    }
  }
}

TEST(TrainerWeightsTest, OptionsAreChecked) {
  for (const auto& [training, field] :
       {std::pair("epochs: 1 accumulation_steps: 5", "training.accumulation_steps"),
        std::pair("epochs: 1 accumulation_steps: -1", "training.accumulation_steps"),
        std::pair("epochs: 1 weight_average { decay: 1 }", "training.weight_average.decay"),
        std::pair("epochs: 1 steps: 1", "training.steps"),
        std::pair("epochs: 1 validation { every_steps: 1 every_epochs: 1 }", "training.validation"),
        std::pair("epochs: 1 best_model { metric: \"f2\" }", "training.best_model.metric"),
        std::pair("epochs: 1 best_model { keep_weights: false export_best: true }",
                  "training.best_model.export_best")}) {
    Trainer::Options options;
    options.spec = SmallJob(2, training);
    options.dataset = options.spec.dataset();
    options.devices.resize(2);
    options.device_factory = [](const v1::Device& device) {
      return OpenDevice(device.name(), {.threads = device.threads()});
    };
    const auto violations = GetFieldViolations(Trainer::Create(options).status());
    ASSERT_EQ(violations.size(), 1) << training;
    EXPECT_EQ(violations[0].field, field);
  }
}

}  // namespace
}  // namespace tandem
