// Losses and metrics in whole trainings, with several replicas and short batches.

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/field_violations.h"
#include "engine/base/testing/from_text.h"
#include "engine/training/plan.h"
#include "engine/training/step_graph.h"
#include "engine/training/trainer_fixture.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// 45 samples of 4 classes in batches of 8, and 27 samples for validation. The rate is too low to change any
// weight.
v1::JobSpec Job(const std::string& training, int replicas, int outputs = 4, int classes = 4) {
  return FromText<v1::JobSpec>(absl::StrCat("dataset { synthetic { shape: [6] classes: ", classes,
                                            R"( train_samples: 45 validation_samples: 27 } }
       model { input { shape: [6] } layers { dense { units: )",
                                            outputs, R"( } } }
       training { optimizer { sgd { learning_rate: 1e-30 } } global_batch_size: 8 epochs: 1 )",
                                            training, " } replicas { count: ", replicas, " }"));
}

absl::StatusOr<v1::EpochSummary> Train(const v1::JobSpec& spec, const std::string& kind) {
  TrainingRecorder recorder;
  if (absl::Status status = tandem::Train(spec, kind, &recorder); !status.ok()) return status;
  return recorder.epochs.back();
}

void ExpectNear(const v1::Evaluation& a, const v1::Evaluation& b, double tolerance) {
  EXPECT_NEAR(a.loss(), b.loss(), tolerance);
  ASSERT_EQ(a.metrics().size(), b.metrics().size());
  for (const auto& [name, value] : a.metrics()) EXPECT_NEAR(value, b.metrics().at(name), tolerance) << name;
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(a.classification(), b.classification()))
      << a.DebugString() << b.DebugString();
}

// Measurements over all samples do not depend on the replicas. This holds for weighted samples, and for
// batches or replicas with ignored samples alone.
TEST(MeasuresTest, DoNotDependOnReplicas) {
  const std::string metrics =
      " metrics: [METRIC_ACCURACY, METRIC_TOP_K, METRIC_PRECISION, METRIC_RECALL, METRIC_F1, "
      "METRIC_CONFUSION_MATRIX, METRIC_AUC] top_k: 2";
  for (const char* loss :
       {"softmax_cross_entropy { label_smoothing: 0.1 class_weights: [1, 2, 3, 0.5] }",
        "softmax_cross_entropy { ignore_index: 2 }", "hinge { class_weights: [1, 2, 3, 0.5] }"}) {
    SCOPED_TRACE(loss);
    const std::string training = absl::StrCat("loss { ", loss, " }", metrics);
    const absl::StatusOr<v1::EpochSummary> one = Train(Job(training, 1), "reference");
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_GT(one->training().loss(), 0);
    EXPECT_EQ(one->training().metrics().size(), 2);
    EXPECT_EQ(one->validation().metrics().size(), 6);
    EXPECT_EQ(one->validation().classification().confusion_matrix().counts_size(), 16);
    for (const int replicas : {2, 5}) {
      v1::JobSpec spec = Job(training, replicas);
      spec.mutable_training()->set_validation_batch_size(7);
      const absl::StatusOr<v1::EpochSummary> several = Train(spec, "reference");
      ASSERT_TRUE(several.ok()) << several.status();
      ExpectNear(one->training(), several->training(), 1e-12);
      ExpectNear(one->validation(), several->validation(), 1e-12);
      const absl::StatusOr<v1::EpochSummary> cpu = Train(spec, "cpu");
      ASSERT_TRUE(cpu.ok()) << cpu.status();
      ExpectNear(one->training(), cpu->training(), 1e-5);
    }
  }
}

TEST(MeasuresTest, ValuesHaveErrors) {
  for (const char* loss : {"mse {}", "l1 {}", "huber { delta: 0.3 }", "smooth_l1 {}"}) {
    SCOPED_TRACE(loss);
    const std::string training = absl::StrCat("loss { ", loss, " } metrics: [METRIC_MAE, METRIC_RMSE]");
    v1::EpochSummary summaries[2];
    for (const int replicas : {1, 3}) {
      v1::JobSpec spec = Job(training, replicas, 3);
      spec.mutable_dataset()->mutable_synthetic()->clear_classes();
      spec.mutable_dataset()->mutable_synthetic()->set_values(3);
      const absl::StatusOr<v1::EpochSummary> epoch = Train(spec, replicas == 1 ? "reference" : "cpu");
      ASSERT_TRUE(epoch.ok()) << epoch.status();
      summaries[replicas == 1 ? 0 : 1] = *epoch;
    }
    ExpectNear(summaries[0].training(), summaries[1].training(), 1e-5);
    ExpectNear(summaries[0].validation(), summaries[1].validation(), 1e-5);
    const v1::Evaluation& validation = summaries[0].validation();
    EXPECT_GT(validation.metrics().at("mae"), 0);
    EXPECT_GE(validation.metrics().at("rmse"), validation.metrics().at("mae"));
    if (std::string(loss) == "mse {}") {
      EXPECT_NEAR(std::pow(validation.metrics().at("rmse"), 2), validation.loss(), 1e-12);
    }
  }
}

TEST(MeasuresTest, TwoClassesMayBeSides) {
  const v1::JobSpec spec = Job(
      "loss { binary_cross_entropy_with_logits { pos_weight: 2 } } metrics: [METRIC_ACCURACY, METRIC_AUC]", 2,
      1, 2);
  const absl::StatusOr<v1::EpochSummary> oracle = Train(spec, "reference");
  const absl::StatusOr<v1::EpochSummary> cpu = Train(spec, "cpu");
  ASSERT_TRUE(oracle.ok() && cpu.ok()) << oracle.status() << cpu.status();
  ExpectNear(oracle->training(), cpu->training(), 1e-5);
  EXPECT_EQ(oracle->validation().metrics().at("accuracy"), cpu->validation().metrics().at("accuracy"));
  EXPECT_EQ(oracle->validation().metrics().at("auc"), cpu->validation().metrics().at("auc"));
}

// Perplexity follows from the reported loss.
TEST(MeasuresTest, PerplexityFollowsTheLoss) {
  const absl::StatusOr<v1::EpochSummary> epoch =
      Train(Job("loss { softmax_cross_entropy {} } metrics: METRIC_PERPLEXITY", 3), "cpu");
  ASSERT_TRUE(epoch.ok()) << epoch.status();
  EXPECT_EQ(epoch->validation().metrics().at("perplexity"), std::exp(epoch->validation().loss()));
}

// There is a single validation sample. In a job that ignores its class, nothing is measured.
TEST(MeasuresTest, AValidationThatIgnoresAllLabelsIsNoResult) {
  int without_result = 0;
  for (int ignored = 0; ignored < 4; ++ignored) {
    SCOPED_TRACE(ignored);
    v1::JobSpec spec = Job(absl::StrCat("loss { softmax_cross_entropy { ignore_index: ", ignored,
                                        " } } metrics: [METRIC_ACCURACY, METRIC_F1] best_model {} "
                                        "early_stopping { patience: 1 }"),
                           2);
    spec.mutable_training()->set_epochs(3);
    spec.mutable_dataset()->mutable_synthetic()->set_validation_samples(1);
    TrainingRecorder recorder;
    const absl::Status status = Train(spec, "cpu", &recorder);
    ASSERT_TRUE(status.ok()) << status;
    const v1::Evaluation& validation = recorder.epochs.back().validation();
    EXPECT_EQ(validation.samples(), 1);
    if (!std::isnan(validation.loss())) {
      EXPECT_GT(validation.loss(), 0);
      EXPECT_EQ(validation.metrics().size(), 2);
      EXPECT_EQ(recorder.epochs.back().best().value(), recorder.epochs[0].validation().loss());
      EXPECT_THAT(recorder.notices, Not(Contains(HasSubstr("no result"))));
      continue;
    }
    ++without_result;
    EXPECT_TRUE(validation.metrics().empty());
    // The empty validation is not the best, and does not count as a measurement without improvement.
    ASSERT_EQ(recorder.epochs.size(), 3);
    for (const v1::EpochSummary& epoch : recorder.epochs) EXPECT_FALSE(epoch.has_best());
    EXPECT_THAT(recorder.notices, Contains(HasSubstr("cannot measure the validation loss after step 6: all 1 "
                                                     "samples are ignored or weigh nothing; it counts as no "
                                                     "result")));
  }
  EXPECT_EQ(without_result, 1);
}

// Returns the fields for which a job is refused, on data with classes.
std::vector<std::string> FaultsOf(const v1::JobSpec& spec, int64_t validation_samples = 27) {
  const DatasetInfo data = {
      .shape = Shape({6}), .classes = 4, .train_samples = 45, .validation_samples = validation_samples};
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(PlanJob(spec, data).status())) {
    fields.push_back(violation.field);
  }
  return fields;
}

TEST(MeasuresTest, WhatDoesNotFitIsRefused) {
  EXPECT_THAT(FaultsOf(Job("loss { softmax_cross_entropy {} }", 1)), IsEmpty());
  EXPECT_THAT(FaultsOf(Job("loss { mse {} }", 1)), ElementsAre("training.loss.mse"));
  EXPECT_THAT(FaultsOf(Job("loss { hinge { class_weights: [1, 2] } }", 1)),
              ElementsAre("training.loss.hinge.class_weights"));
  EXPECT_THAT(FaultsOf(Job("loss { hinge {} }", 1, 5)), ElementsAre("model.layers[0]"));
  EXPECT_THAT(FaultsOf(Job("loss { hinge {} } metrics: METRIC_TOP_K top_k: 5", 1)),
              ElementsAre("training.top_k"));
  EXPECT_THAT(FaultsOf(Job("loss { hinge {} } metrics: METRIC_MAE", 1)), ElementsAre("training.metrics[0]"));
  const v1::JobSpec plateau =
      Job("loss { hinge {} } metrics: METRIC_F1 schedule { plateau { metric: METRIC_F1 } }", 1);
  EXPECT_THAT(FaultsOf(plateau), IsEmpty());
  EXPECT_THAT(FaultsOf(plateau, 0), ElementsAre("training.schedule.plateau.metric"));
  v1::JobSpec frozen = Job("loss { softmax_cross_entropy {} }", 1);
  v1::ParameterGroup* group = frozen.mutable_training()->mutable_optimizer()->add_groups();
  group->add_names("*.weight");
  group->set_frozen(true);
  EXPECT_THAT(FaultsOf(frozen), IsEmpty());
  group->set_biases_and_norms(true);
  EXPECT_THAT(FaultsOf(frozen), ElementsAre("training.optimizer.groups"));
}

TEST(MeasuresTest, NothingIsComputedForWhatIsFrozen) {
  v1::JobSpec spec = Job("loss { softmax_cross_entropy {} }", 2);
  v1::ParameterGroup* group = spec.mutable_training()->mutable_optimizer()->add_groups();
  group->add_names("*.weight");
  group->set_frozen(true);
  FillDefaults(&spec);
  const DatasetInfo data = {.shape = Shape({6}), .classes = 4, .train_samples = 45};
  for (const int64_t samples : {4, 0}) {
    const absl::StatusOr<StepGraph> step =
        BuildTrainingGraph(spec, data, {.samples = samples, .batch_samples = 8, .replicas = 2});
    ASSERT_TRUE(step.ok()) << step.status();
    int updates = 0;
    for (const Node& node : step->graph.nodes()) {
      if (node.op->kind() == "all_reduce") {
        EXPECT_EQ(node.inputs.size(), 1);
      }
      if (node.op->kind() != "sgd") continue;
      ++updates;
      EXPECT_EQ(step->graph.value(node.inputs[0]).name, step->parameters[1].name);
    }
    EXPECT_EQ(updates, 1);
  }
}

}  // namespace
}  // namespace tandem
