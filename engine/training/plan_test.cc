#include "engine/training/plan.h"

#include <ctime>
#include <string>

#include "engine/base/field_violations.h"
#include "engine/base/testing/field_at_fault.h"
#include "engine/base/testing/from_text.h"
#include "engine/training/watched_measure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using ::testing::Not;

const DatasetInfo kFashion = {
    .shape = Shape({1, 28, 28}), .classes = 10, .train_samples = 60000, .validation_samples = 10000};

v1::JobSpec Lenet(const std::string& more = "") {
  v1::JobSpec spec = FromText<v1::JobSpec>(R"(
    name: "lenet"
    dataset { name: "fashion-mnist" }
    model {
      input { shape: [1, 28, 28] }
      layers { conv2d { filters: 20 kernel: [5, 5] } }
      layers { max_pool2d { size: [2, 2] } }
      layers { conv2d { filters: 50 kernel: [5, 5] } }
      layers { max_pool2d { size: [2, 2] } }
      layers { dense { units: 500 activation: ACTIVATION_RELU } }
      layers { dense { units: 10 } }
    }
    training {
      loss { softmax_cross_entropy {} }
      optimizer { nesterov { learning_rate: 0.02 } }
      global_batch_size: 128
      epochs: 3
    }
    replicas { count: 2 })");
  spec.MergeFrom(FromText<v1::JobSpec>(more));
  return spec;
}

// Expects a single violation.
void ExpectViolation(const v1::JobSpec& spec, const std::string& field, const std::string& part,
                     const DatasetInfo& dataset = kFashion) {
  ExpectOneViolation(PlanJob(spec, dataset).status(), field, part);
}

TEST(PlanTest, KnowsWhatAJobTakes) {
  const absl::StatusOr<JobPlan> plan = PlanJob(Lenet(), kFashion);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->parameters, 431080);
  EXPECT_EQ(plan->steps_per_epoch, 469);
  EXPECT_EQ(plan->steps, 1407);
  EXPECT_THAT(plan->ops, IsSupersetOf({"conv2d", "conv2d_grad_weight", "linear", "max_pool2d", "all_reduce",
                                       "sgd", "normalize", "accumulate", "count_correct"}));
  // At least the parameters, their momenta and the largest activation, [64, 20, 24, 24].
  EXPECT_GT(plan->replica_memory_bytes, kWorkspaceCapBytes + 8 * 431080 + 4 * 64 * 20 * 24 * 24);
  EXPECT_LT(plan->replica_memory_bytes, int64_t{256} << 20);
}

TEST(PlanTest, ReportsOfParametersKeepTwoCopies) {
  const absl::StatusOr<JobPlan> plain = PlanJob(Lenet(), kFashion);
  const absl::StatusOr<JobPlan> reporting = PlanJob(Lenet("training { report_parameters: true }"), kFashion);
  ASSERT_TRUE(plain.ok() && reporting.ok());
  EXPECT_EQ(reporting->host_memory_bytes, plain->host_memory_bytes + 2 * 4 * 431080);
}

// Rank 0 gathers the errors of all replicas to write a checkpoint.
TEST(PlanTest, CheckpointsHaveTheErrorsOfEachReplica) {
  const auto host_bytes = [](const std::string& more) {
    return PlanJob(Lenet("replicas { count: 4 " + more + " }"), kFashion)->host_memory_bytes;
  };
  // The bytes of all weights, and of their factors.
  const int64_t errors = 4 * (20 * 25 + 50 * 500 + 500 * 800 + 10 * 500);
  const int64_t starts = 4 * 4 * (25 + 500 + 800 + 500);
  EXPECT_EQ(host_bytes("all_reduce { compression { rank: 4 } }"), host_bytes("") + 4 * errors + starts);
}

TEST(PlanTest, AMatrixTooLargeToBeMadeOrthogonalIsRefused) {
  const std::string orthogonal = "model { weight_initializer { orthogonal {} } layers { dense { units: ";
  EXPECT_TRUE(PlanJob(Lenet(orthogonal + "10 } } }"), kFashion).ok());
  ExpectViolation(
      Lenet(orthogonal + "8192 } } layers { dense { units: 8192 } } layers { dense { units: 10 } } }"),
      "model", "dense_4.weight [8192, 8192]");
}

TEST(PlanTest, OneClassIsNothingToLearn) {
  DatasetInfo data = kFashion;
  data.classes = 1;
  data.class_names = {"flowers"};
  data.one_class_mend = "give image_folder.train: flowers/flowers";
  v1::JobSpec spec = Lenet();
  spec.mutable_model()->mutable_layers()->rbegin()->mutable_dense()->set_units(1);
  ExpectViolation(spec, "dataset",
                  "has training samples of one class, 'flowers', so that there is nothing to learn; give "
                  "image_folder.train: flowers/flowers",
                  data);
  data = kFashion;
  data.one_label = true;
  ExpectViolation(Lenet(), "dataset",
                  "has training samples of one class alone, so that there is nothing to learn; give samples "
                  "of at least two classes",
                  data);
}

TEST(PlanTest, ALoadedModelsFirstClassHasNoPositiveWeight) {
  DatasetInfo data = kFashion;
  data.classes = 2;
  v1::JobSpec spec = Lenet("training { loss { binary_cross_entropy_with_logits { pos_weight: 3 } } }");
  spec.mutable_model()->mutable_layers()->rbegin()->mutable_dense()->set_units(1);
  EXPECT_TRUE(PlanJob(spec, data).ok()) << PlanJob(spec, data).status();
  data.class_labels = {1, 0};
  ExpectViolation(spec, "training.loss.binary_cross_entropy_with_logits.pos_weight",
                  "cannot weigh the data set's second class, because it is the first class of the loaded",
                  data);
}

TEST(PlanTest, SaysWhatMemoryIsFor) {
  const MemoryGroups memory = PlanJob(Lenet(), kFashion)->memory;
  EXPECT_EQ(memory.total(), PlanJob(Lenet(), kFashion)->replica_memory_bytes);
  EXPECT_EQ(memory.parameters, 4 * 431080);
  EXPECT_EQ(memory.optimizer_state, 4 * 431080);
  EXPECT_GT(memory.activations, 4 * 64 * 20 * 24 * 24);
  EXPECT_GT(memory.workspace, kWorkspaceCapBytes);
  EXPECT_GE(memory.data, 3 * (64 + 128) * (28 * 28 + 4));
  EXPECT_EQ(memory.statistics, 0);
  EXPECT_THAT(memory.ToString(), testing::StartsWith("workspace "));
  EXPECT_THAT(memory.ToString(),
              testing::EndsWith(", parameters 1.6 MiB, optimizer state 1.6 MiB, data 0.4 MiB"));
}

TEST(PlanTest, WorkspacesOfGpusAreLimited) {
  const auto workspace = [](const char* more) { return PlanJob(Lenet(more), kFashion)->memory.workspace; };
  const int64_t usual =
      workspace("replicas { device_kind: DEVICE_KIND_GPU } gpu { data: DATA_PLACEMENT_HOST_MEMORY }");
  EXPECT_EQ(usual, workspace(""));
  // A thousand bytes for each of four graphs: whole and last batches, for training and for validation.
  EXPECT_EQ(workspace("replicas { device_kind: DEVICE_KIND_GPU } "
                      "gpu { data: DATA_PLACEMENT_HOST_MEMORY workspace_limit_bytes: 1000 }"),
            kWorkspaceCapBytes + 4 * 1000);
  EXPECT_EQ(workspace("gpu { workspace_limit_bytes: 1000 }"), usual);
}

TEST(PlanTest, LimitsOfGpusAreChecked) {
  ExpectViolation(Lenet("gpu { memory_limit_bytes: -1 }"), "gpu.memory_limit_bytes", "at least 1");
  ExpectViolation(Lenet("gpu { workspace_limit_bytes: -1 }"), "gpu.workspace_limit_bytes", "at least 1");
  ExpectViolation(Lenet("gpu { max_threads_per_block: 100 }"), "gpu.max_threads_per_block", "128, 256, 512");
  ExpectViolation(Lenet("gpu { max_blocks: -3 }"), "gpu.max_blocks", "at least 1");
  EXPECT_TRUE(PlanJob(Lenet("gpu { max_threads_per_block: 128 max_blocks: 1 }"), kFashion).ok());
}

TEST(PlanTest, OneReplicaNeedsNoReduction) {
  v1::JobSpec spec = Lenet();
  spec.mutable_replicas()->set_count(1);
  const absl::StatusOr<JobPlan> plan = PlanJob(spec, kFashion);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->ops, Not(Contains("all_reduce")));
}

TEST(PlanTest, TheReferenceKindCountsDoubles) {
  const int64_t single = PlanJob(Lenet(), kFashion)->replica_memory_bytes - kWorkspaceCapBytes;
  const int64_t twice =
      PlanJob(Lenet("replicas { device_kind: DEVICE_KIND_REFERENCE }"), kFashion)->replica_memory_bytes -
      kWorkspaceCapBytes;
  EXPECT_GT(twice, single * 3 / 2);
}

TEST(PlanTest, BatchesThatArePreparedAheadTakeMemory) {
  const auto planned = [](const char* more) { return PlanJob(Lenet(more), kFashion)->replica_memory_bytes; };
  // A replica's half of a training batch of 128 and of a validation batch of 256, with its labels.
  constexpr int64_t kBatches = (64 + 128) * (28 * 28 + 4);
  const int64_t more = planned("replicas { prefetch: 62 }") - planned("replicas { prefetch: 2 }");
  EXPECT_GE(more, 60 * kBatches);
  EXPECT_LE(more, 60 * (kBatches + 64));
}

TEST(PlanTest, ABatchLargerThanTheDataIsOneShortBatch) {
  v1::JobSpec spec = Lenet("training { global_batch_size: 100000 }");
  const absl::StatusOr<JobPlan> plan = PlanJob(spec, kFashion);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps_per_epoch, 1);
}

TEST(PlanTest, ALastShortBatchIsDropped) {
  const absl::StatusOr<JobPlan> plan = PlanJob(Lenet("training { drop_last: true }"), kFashion);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps_per_epoch, 468);
  EXPECT_EQ(plan->steps, 1404);
}

TEST(PlanTest, DroppingMustLeaveABatch) {
  ExpectViolation(Lenet("training { global_batch_size: 60001 drop_last: true }"), "training.drop_last",
                  "leaves nothing of the 60000 training samples, fewer than the 60001 of a batch");
}

TEST(PlanTest, BalancedSamplesNeedClassesAndShuffling) {
  const absl::StatusOr<JobPlan> plan = PlanJob(Lenet("training { balance_samples: true }"), kFashion);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps, 1407);
  ExpectViolation(Lenet("training { balance_samples: true shuffle: false }"), "training.balance_samples",
                  "leave shuffle: false out");
  ExpectViolation(
      Lenet("training { balance_samples: true loss { softmax_cross_entropy { balance_classes: true } } }"),
      "training.balance_samples", "leave one of them out");
  DatasetInfo values = kFashion;
  values.target_type = TargetKind::kValues;
  values.target_shape = Shape({10});
  v1::JobSpec spec = Lenet("training { balance_samples: true }");
  spec.mutable_training()->mutable_loss()->mutable_mse();
  ExpectViolation(spec, "training.balance_samples", "the data set's targets are values", values);
}

TEST(PlanTest, DefaultsAreFilledIn) {
  v1::JobSpec spec = Lenet();
  spec.clear_replicas();
  spec.clear_name();
  FillDefaults(&spec);
  EXPECT_EQ(spec.name(), "job");
  EXPECT_EQ(spec.replicas().count(), 1);
  EXPECT_EQ(spec.replicas().prefetch(), 2);
  EXPECT_TRUE(spec.replicas().has_all_reduce());
  EXPECT_TRUE(spec.training().shuffle());
  EXPECT_THAT(spec.training().metrics(), ElementsAre(v1::METRIC_ACCURACY));
  EXPECT_EQ(spec.training().validation_batch_size(), 256);
  EXPECT_EQ(spec.training().report().every_seconds(), 1);
  EXPECT_EQ(spec.training().optimizer().nesterov().momentum(), 0.9);
  EXPECT_EQ(spec.model().layers(2).name(), "conv2d_2");
}

TEST(PlanTest, ABatchMustGiveEachReplicaASample) {
  ExpectViolation(Lenet("training { global_batch_size: 1 }"), "training.global_batch_size",
                  "is 1, less than the 2 replicas");
}

TEST(PlanTest, TheModelMustFitTheData) {
  DatasetInfo cifar = kFashion;
  cifar.shape = Shape({3, 32, 32});
  ExpectViolation(Lenet(), "model.input.shape", "is [1, 28, 28], but the data set's samples are [3, 32, 32]",
                  cifar);
  DatasetInfo letters = kFashion;
  letters.classes = 26;
  ExpectViolation(Lenet(), "model.layers[5]", "\"dense_2\", gives [10], but the loss needs [26]", letters);
}

// In the last batch, of 3 samples, the second replica has a single sample.
TEST(PlanTest, BatchNormTakesNoSingleSample) {
  const v1::JobSpec spec = Lenet("model { layers { batch_norm {} } }");
  DatasetInfo data = kFashion;
  EXPECT_TRUE(PlanJob(spec, data).ok()) << PlanJob(spec, data).status();
  data.train_samples = 128 + 3;
  ExpectViolation(spec, "model.layers[6].batch_norm", "single value a channel", data);
}

TEST(PlanTest, ThereMustBeSomethingToLearn) {
  v1::JobSpec spec = Lenet();
  spec.mutable_model()->clear_layers();
  spec.mutable_model()->mutable_input()->clear_shape();
  spec.mutable_model()->mutable_input()->add_shape(10);
  spec.mutable_model()->add_layers()->mutable_activation()->set_function(v1::ACTIVATION_RELU);
  DatasetInfo features = kFashion;
  features.shape = Shape({10});
  ExpectViolation(spec, "model.layers", "have nothing to learn", features);
}

TEST(PlanTest, PathsReachIntoLayers) {
  v1::JobSpec spec = Lenet();
  spec.mutable_model()->mutable_layers(2)->mutable_conv2d()->set_kernel(0, -5);
  ExpectViolation(spec, "model.layers[2].conv2d.kernel[0]", "is -5; it must be at least 1");
  spec = Lenet();
  spec.mutable_model()->mutable_layers(2)->mutable_conv2d()->set_kernel(0, 50);
  ExpectViolation(spec, "model.layers[2].conv2d.kernel", "layer \"conv2d_2\" reads [20, 12, 12]");
}

TEST(PlanTest, CheckpointsAndRestartsAreCheckedAndFilled) {
  v1::JobSpec filled = Lenet();
  FillDefaults(&filled);
  EXPECT_EQ(filled.checkpoints().keep_last(), 1);
  EXPECT_EQ(filled.max_restarts(), 3);
  v1::JobSpec all =
      Lenet("checkpoints { every_minutes: 0.5 keep_last: 100 keep_best: true } max_restarts: 0");
  EXPECT_TRUE(CheckJob(all).ok());
  FillDefaults(&all);
  EXPECT_EQ(all.checkpoints().every_epochs(), 1);
  EXPECT_TRUE(all.has_max_restarts());
  EXPECT_EQ(all.max_restarts(), 0);
  EXPECT_TRUE(CheckJob(Lenet("checkpoints { off: true }")).ok());
  ExpectViolation(Lenet("checkpoints { every_minutes: -1 }"), "checkpoints.every_minutes",
                  "is -1; it must be");
  ExpectViolation(Lenet("checkpoints { every_minutes: nan }"), "checkpoints.every_minutes", "is nan");
  ExpectViolation(Lenet("checkpoints { keep_last: 101 }"), "checkpoints.keep_last",
                  "it must be from 1 to 100");
  ExpectViolation(Lenet("checkpoints { keep_last: -1 }"), "checkpoints.keep_last",
                  "it must be from 1 to 100");
  ExpectViolation(Lenet("checkpoints { off: true every_minutes: 1 }"), "checkpoints.off",
                  "an interval is given");
  ExpectViolation(Lenet("checkpoints { off: true keep_best: true }"), "checkpoints.off", "nothing to keep");
  ExpectViolation(Lenet("max_restarts: 101"), "max_restarts", "is 101; it must be from 0 to 100");
  ExpectViolation(Lenet("max_restarts: -1"), "max_restarts", "is -1; it must be from 0 to 100");
}

TEST(PlanTest, HugeSizesAreRefused) {
  v1::JobSpec spec = Lenet("training { global_batch_size: 9000000000000000000 }");
  ExpectViolation(spec, "training.global_batch_size", "it must be at most 2147483647");
  spec = Lenet();
  spec.mutable_model()->mutable_layers(4)->mutable_dense()->set_units(2147483647);
  const absl::StatusOr<JobPlan> plan = PlanJob(spec, kFashion);
  if (plan.ok()) {
    EXPECT_GT(plan->replica_memory_bytes, int64_t{1} << 42);
  } else {
    EXPECT_EQ(GetFieldViolations(plan.status())[0].field, "model.layers[4]") << plan.status();
  }
  DatasetInfo many = kFashion;
  many.train_samples = 2147483647;
  ExpectViolation(Lenet("training { global_batch_size: 2147483647 accumulation_steps: 1000000000 }"),
                  "training.accumulation_steps", "is 1000000000; it must be at most 65536", many);
}

TEST(PlanTest, ANameBeginsWithALetterOrADigit) {
  v1::JobSpec spec = Lenet("");
  for (const char* name : {"lenet-5.b_2", "5-lenet", ""}) {
    spec.set_name(name);
    EXPECT_TRUE(PlanJob(spec, kFashion).ok()) << name;
  }
  for (const char* name : {"-rf", "..", ".hidden", "_", "a b", "a\nb", "../token", "\xc3\xbc"}) {
    spec.set_name(name);
    const std::vector<FieldViolation> violations = GetFieldViolations(PlanJob(spec, kFashion).status());
    ASSERT_EQ(violations.size(), 1) << name;
    EXPECT_EQ(violations[0].field, "name") << name;
  }
}

TEST(PlanTest, EverythingIsReportedAtOnce) {
  v1::JobSpec spec = Lenet(R"(
    training { report { every_seconds: 0.001 every_steps: -1 } validation_batch_size: -1
               optimizer { sgd { weight_decay: -1 } } }
    replicas { prefetch: 65 })");
  spec.set_name("a name with spaces");
  spec.mutable_training()->clear_loss();
  spec.mutable_training()->set_epochs(0);
  spec.mutable_model()->mutable_layers(0)->clear_kind();
  spec.mutable_replicas()->set_count(-2);
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(PlanJob(spec, kFashion).status())) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields,
              ElementsAre("name", "model.layers[0]", "training.loss", "training.optimizer.sgd.learning_rate",
                          "training.optimizer.sgd.weight_decay", "training.epochs",
                          "training.report.every_seconds", "training.report.every_steps",
                          "training.validation_batch_size", "replicas.count", "replicas.prefetch"));
}

// Admission plans while its caller waits, so the time must grow linearly with the number of layers. It is
// measured in processor time, which does not depend on other processes.
TEST(PlanTest, TheDeepestModelIsPlannedInTime) {
  v1::JobSpec spec = Lenet();
  const auto plan = [&spec](int layers) {
    spec.mutable_model()->clear_layers();
    for (int i = 1; i < layers; ++i) spec.mutable_model()->add_layers()->mutable_dense()->set_units(8);
    spec.mutable_model()->add_layers()->mutable_dense()->set_units(10);
    const std::clock_t begin = std::clock();
    const absl::StatusOr<JobPlan> plan = PlanJob(spec, kFashion);
    const std::clock_t end = std::clock();
    EXPECT_TRUE(plan.ok()) << plan.status();
    return static_cast<double>(end - begin) / CLOCKS_PER_SEC;
  };
  plan(256);
  const double quarter = plan(1024);
  const double whole = plan(4096);
  // The ratio is 16 for quadratic growth, and 64 for cubic growth.
  EXPECT_LT(whole / quarter, 32) << whole << " s after " << quarter << " s";
  spec.mutable_model()->add_layers()->mutable_dense()->set_units(10);
  ExpectViolation(spec, "model.layers", "has 4097 layers; at most 4096 are taken");
}

TEST(PlanTest, OptimizersAreCheckedAgainstTheModel) {
  v1::JobSpec spec = Lenet();
  spec.mutable_training()->mutable_optimizer()->mutable_adam();
  v1::ParameterGroup* group = spec.mutable_training()->mutable_optimizer()->add_groups();
  group->set_weight_decay(0);
  group->add_names("*.bias");
  const absl::StatusOr<JobPlan> plan = PlanJob(spec, kFashion);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->ops, Contains("adam"));
  // Parameters and two moments of each.
  EXPECT_GT(plan->replica_memory_bytes, kWorkspaceCapBytes + 12 * 431080 + 4 * 64 * 20 * 24 * 24);
  group->add_names("*.scale");
  ExpectViolation(spec, "training.optimizer.groups[0].names[1]", "\"*.scale\" matches no parameter");
}

TEST(PlanTest, SchedulesAreCheckedAndFilled) {
  ExpectViolation(Lenet("training { schedule { multistep { milestones: [3, 2] } } }"),
                  "training.schedule.multistep.milestones[1]", "is 2; it must be from 4");
  v1::JobSpec spec = Lenet("training { schedule { plateau { metric: METRIC_ACCURACY } } }");
  EXPECT_TRUE(CheckJob(spec).ok()) << CheckJob(spec);
  FillDefaults(&spec);
  EXPECT_EQ(spec.training().schedule().plateau().patience(), 10);
}

// A fork takes the stored spec and changes its fields.
TEST(PlanTest, WhatFollowsFromAnotherFieldStaysOut) {
  v1::JobSpec spec = Lenet(R"(training {
    schedule { plateau { metric: METRIC_ACCURACY } warmup { length: 2 } }
    early_stopping { metric: "accuracy" patience: 3 }
  })");
  FillDefaults(&spec);
  EXPECT_FALSE(spec.training().has_best_model());
  EXPECT_EQ(BestMeasure(spec.training()).ToString(), "the largest accuracy");
  EXPECT_EQ(spec.training().early_stopping().mode(), v1::PLATEAU_MODE_UNSPECIFIED);
  EXPECT_EQ(spec.training().schedule().plateau().mode(), v1::PLATEAU_MODE_UNSPECIFIED);
  EXPECT_EQ(spec.training().schedule().unit(), v1::SCHEDULE_UNIT_UNSPECIFIED);
  EXPECT_EQ(spec.training().schedule().warmup().unit(), v1::SCHEDULE_UNIT_UNSPECIFIED);
  // A fork that sets best_model keeps its weights.
  spec.mutable_training()->mutable_best_model()->set_metric("loss");
  FillDefaults(&spec);
  EXPECT_TRUE(spec.training().best_model().keep_weights());
  EXPECT_EQ(BestMeasure(spec.training()).ToString(), "the least loss");
  // best_model takes the mode together with the metric of early stopping.
  spec = Lenet("training { early_stopping { metric: 'accuracy' mode: PLATEAU_MODE_MIN patience: 3 } }");
  FillDefaults(&spec);
  EXPECT_EQ(BestMeasure(spec.training()).ToString(), "the least accuracy");
}

TEST(PlanTest, AJobIsCheckedWithoutItsDataToo) {
  EXPECT_TRUE(CheckJob(Lenet()).ok()) << CheckJob(Lenet());
  v1::JobSpec spec = Lenet("training { epochs: -1 }");
  EXPECT_EQ(GetFieldViolations(CheckJob(spec))[0].field, "training.epochs");
}

TEST(PlanTest, AnEmptyJobIsRefusedWithoutHarm) {
  const absl::Status status = PlanJob(v1::JobSpec(), kFashion).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_GE(GetFieldViolations(status).size(), 5);
}

TEST(PlanTest, SamplesLieOnTheGpuWhereTheyAreOffered) {
  constexpr int64_t kBytes = int64_t{70000} * (784 + 4);
  const auto plan = [](const std::string& more, const DatasetInfo& data = kFashion) {
    const absl::StatusOr<JobPlan> plan = PlanJob(Lenet(more), data);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *plan : JobPlan();
  };
  const std::string gpu = "replicas { device_kind: DEVICE_KIND_GPU }";
  const JobPlan resident = plan(gpu);
  EXPECT_EQ(resident.resident_bytes, kBytes);
  EXPECT_THAT(resident.ops, Contains("gather_samples"));
  const JobPlan host = plan(gpu + "gpu { data: DATA_PLACEMENT_HOST_MEMORY }");
  EXPECT_EQ(host.resident_bytes, 0);
  EXPECT_THAT(host.ops, Not(Contains("gather_samples")));
  EXPECT_GT(resident.replica_memory_bytes, host.replica_memory_bytes + kBytes / 2);
  // The copy for checkpoints has no samples.
  EXPECT_EQ(resident.host_memory_bytes, host.host_memory_bytes + kBytes);
  EXPECT_EQ(plan("replicas { device_kind: DEVICE_KIND_CPU }").resident_bytes, 0);
  // Training samples alone, because the host computes this metric in validation.
  EXPECT_EQ(plan(gpu + "training { metrics: METRIC_F1 }").resident_bytes, kBytes / 7 * 6);
  EXPECT_THAT(
      plan(gpu + "dataset { augmentation { crop { padding: 2 } } augmentation { rotation { degrees: 9 } } }")
          .ops,
      IsSupersetOf({"translate_images", "resample_images"}));

  EXPECT_LT(host.replica_memory_bytes, int64_t{128} << 20);
  EXPECT_EQ(plan(gpu + "gpu { memory_limit_bytes: 134217728 }").resident_bytes, 0);
  EXPECT_EQ(
      plan(gpu + "gpu { memory_limit_bytes: 134217728 data: DATA_PLACEMENT_GPU_MEMORY }").resident_bytes,
      kBytes);
}

TEST(PlanTest, SamplesThatMustLieOnTheGpuAreOffered) {
  const std::string must =
      "replicas { device_kind: DEVICE_KIND_GPU } gpu { data: DATA_PLACEMENT_GPU_MEMORY }";
  DatasetInfo mixed = kFashion;
  mixed.mixes_classes = true;
  ExpectViolation(Lenet(must), "gpu.data", "mixup and cutmix", mixed);
  DatasetInfo shards = kFashion;
  shards.stays_in_files = true;
  ExpectViolation(Lenet(must), "gpu.data", "pictures in shards are decoded for each batch", shards);
  const absl::StatusOr<JobPlan> plan = PlanJob(Lenet("replicas { device_kind: DEVICE_KIND_GPU }"), shards);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->resident_bytes, 0);
  DatasetInfo floats = kFashion;
  floats.sample_type = SampleType::kFloats;
  ExpectViolation(Lenet(must + "dataset { augmentation { crop { padding: 2 } } }"), "gpu.data",
                  "other numbers than bytes", floats);
  EXPECT_TRUE(PlanJob(Lenet(must), floats).ok());
  ExpectViolation(Lenet("gpu { steps_per_launch: 65 }"), "gpu.steps_per_launch", "from 1 to 64");
}

TEST(PlanTest, TokensAreForEmbeddings) {
  v1::JobSpec spec = Lenet();
  spec.mutable_model()->clear_layers();
  spec.mutable_model()->mutable_input()->clear_shape();
  spec.mutable_model()->mutable_input()->add_shape(4);
  v1::Embedding* embedding = spec.mutable_model()->add_layers()->mutable_embedding();
  embedding->set_vocabulary_size(10);
  embedding->set_dimension(3);
  spec.mutable_model()->add_layers()->mutable_dense()->set_units(10);
  DatasetInfo data = {.shape = Shape({4}), .classes = 10, .train_samples = 100};
  ExpectViolation(spec, "model.layers[0]", "reads tokens, but the data set's samples are [4] numbers", data);
  data.sample_type = SampleType::kTokens;
  EXPECT_TRUE(PlanJob(spec, data).ok()) << PlanJob(spec, data).status();
  embedding->set_vocabulary_size(9);
  ExpectViolation(spec, "model.layers[0].embedding.vocabulary_size", "is 9, less than the 10 tokens", data);
  spec.mutable_model()->mutable_layers()->DeleteSubrange(0, 1);
  ExpectViolation(spec, "model.layers[0]", "put an embedding with a vocabulary_size of 10 before it", data);
}

}  // namespace
}  // namespace tandem
