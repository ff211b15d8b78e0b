#include <google/protobuf/util/message_differencer.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/lib/job_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job_file/yaml_writer.h"

namespace tandem::client {
namespace {

constexpr char kJob[] =
    "name: x\n"
    "model:\n"
    "  input: {shape: [1, 28, 28]}\n"
    "  layers:\n"
    "  - conv2d: {filters: 20, kernel: [5, 5]}\n"
    "  - dense: {units: 10}\n"
    "training:\n"
    "  optimizer: {nesterov: {learning_rate: 0.02}}\n"
    "  epochs: 3\n"
    "replicas: {count: 2}\n";

struct Case {
  const char* assignment;
  // The expected line of the job's YAML, or the whole message of the error.
  const char* result;
};

class GoodOverrideTest : public ::testing::TestWithParam<Case> {};

TEST_P(GoodOverrideTest, Changes) {
  v1::JobSpec spec = ParseJobFile(kJob, "job.yaml")->spec;
  const absl::Status status = ApplyOverride(GetParam().assignment, &spec);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(ToYaml(spec), ::testing::HasSubstr(GetParam().result)) << GetParam().assignment;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoodOverrideTest,
    ::testing::Values(
        Case{"training.epochs=1", "\n  epochs: 1\n"}, Case{" training.epochs = 1", "\n  epochs: 1\n"},
        Case{"name=my-job", "name: my-job\n"}, Case{"name=a=b", "name: \"a=b\"\n"},
        Case{"replicas.count=4", "replicas: {count: 4}\n"},
        Case{"replicas.device_kind=cpu", "replicas: {count: 2, device_kind: cpu}\n"},
        Case{"dataset.name=mnist", "dataset: {name: mnist}\n"},
        Case{"model.layers[0].conv2d.filters=8", "conv2d: {filters: 8, kernel: [5, 5]}\n"},
        Case{"model.layers[0].conv2d.kernel=[3, 3]", "conv2d: {filters: 20, kernel: [3, 3]}\n"},
        Case{"model.layers[0].conv2d.kernel=3", "conv2d: {filters: 20, kernel: [3]}\n"},
        Case{"model.layers[0].conv2d.kernel[1]=7", "conv2d: {filters: 20, kernel: [5, 7]}\n"},
        Case{"model.input.shape[0]=3", "input: {shape: [3, 28, 28]}\n"},
        Case{"model.layers[1]={flatten: {}}", "- flatten: {}\n"},
        Case{"model.layers[1]=flatten", "- flatten: {}\n"},
        Case{"model.layers[1].dense.activation=relu", "dense: {units: 10, activation: relu}\n"},
        Case{"training.optimizer.nesterov.momentum=0.5", "nesterov: {learning_rate: 0.02, momentum: 0.5}"},
        Case{"training.optimizer={sgd: {learning_rate: 0.1}}", "optimizer: {sgd: {learning_rate: 0.1}}\n"},
        Case{"training.optimizer.sgd.learning_rate=0.1", "optimizer: {sgd: {learning_rate: 0.1}}\n"},
        Case{"training.loss=softmax_cross_entropy", "loss: {softmax_cross_entropy: {}}\n"}));

class BadOverrideTest : public ::testing::TestWithParam<Case> {};

TEST_P(BadOverrideTest, IsRefusedAndChangesNothing) {
  v1::JobSpec spec = ParseJobFile(kJob, "job.yaml")->spec;
  const v1::JobSpec before = spec;
  EXPECT_EQ(ApplyOverride(GetParam().assignment, &spec).message(), GetParam().result);
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(spec, before));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, BadOverrideTest,
    ::testing::Values(
        Case{"training.epochs=1\n---\n2",
             "training.epochs: the value has a second YAML document (`---`); give one value"},
        Case{"training.epoch=1", "training.epoch: unknown field; did you mean `epochs`?"},
        Case{"training.epochs=many", "training.epochs: want a whole number, got `many`"},
        Case{"training.epochs=", "training.epochs: has no value; want a whole number, or leave it out"},
        Case{"training.epochs.x=1", "training.epochs: has no fields of its own"},
        Case{"training.epochs[0]=1", "training.epochs: is no list"},
        Case{"training.optimizer={sdg: {}}", "training.optimizer.sdg: unknown field; did you mean `sgd`?"},
        Case{"model.layers[2].dense.units=1",
             "model.layers[2]: the list has 2 elements, of which the last is [1]"},
        Case{"model.layers.dense.units=1",
             "model.layers: is a list; name an element, such as model.layers[0]"},
        Case{"model.layers[0].conv2d.kernel[1]=x",
             "model.layers[0].conv2d.kernel[1]: want a whole number, got `x`"},
        Case{"model=lenet", "model: want a mapping such as {template: {lenet: {}}}, got `lenet`"},
        Case{"model.layers[1]=quux", "model.layers[1]: want a mapping, got `quux`"},
        Case{"training", "`training`: want PATH=VALUE, such as training.epochs=1"},
        Case{"=1", "`` is no path of a field: want one such as model.layers[0].conv2d.filters"},
        Case{"training..epochs=1",
             "`training..epochs` is no path of a field: want one such as "
             "model.layers[0].conv2d.filters"},
        Case{"model.layers[x].dense=1",
             "`model.layers[x].dense` is no path of a field: want one such as "
             "model.layers[0].conv2d.filters"},
        Case{"model.layers[-1].dense=1",
             "`model.layers[-1].dense` is no path of a field: want one such as "
             "model.layers[0].conv2d.filters"},
        Case{"training.epochs=[",
             "training.epochs: the value is not valid YAML: end of sequence flow not found"},
        Case{"name=", "name: has no value; want text, or leave it out"},
        Case{"model.layers[0].conv2d.kernel[1]=null",
             "model.layers[0].conv2d.kernel[1]: has no value; want a whole number, or leave it out"},
        Case{"name=[a]", "name: want text, got a list"},
        Case{"name={a: b}", "name: want text, got a mapping"},
        Case{"name=\"a\"b\"", "name: the value has a second YAML document (`---`); give one value"}));

TEST(NullOverrideTest, UnsetsFields) {
  v1::JobSpec spec = ParseJobFile(kJob, "job.yaml")->spec;
  spec.mutable_dataset()->mutable_validation_split()->set_fraction(0.5);
  v1::JobSpec wanted = spec;
  wanted.clear_name();
  wanted.mutable_dataset()->clear_validation_split();
  wanted.mutable_model()->mutable_layers(0)->mutable_conv2d()->clear_kernel();
  wanted.mutable_training()->clear_epochs();
  wanted.mutable_training()->mutable_optimizer()->clear_nesterov();
  for (const char* assignment :
       {"name=null", "dataset.validation_split = null ", "model.layers[0].conv2d.kernel=null",
        "training.epochs=null", "training.optimizer.nesterov=null"}) {
    const absl::Status status = ApplyOverride(assignment, &spec);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(spec, wanted)) << spec.DebugString();
}

TEST(NullOverrideTest, AddsNothing) {
  const v1::JobSpec before = ParseJobFile(kJob, "job.yaml")->spec;
  for (const char* assignment :
       {"training.weight_average=null", "training.weight_average.decay=null",
        "dataset.normalization.mean=null", "training.optimizer.sgd.learning_rate=null"}) {
    v1::JobSpec spec = before;
    const absl::Status status = ApplyOverride(assignment, &spec);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(spec, before)) << assignment;
  }
}

class TextOverrideTest : public ::testing::TestWithParam<Case> {};

TEST_P(TextOverrideTest, TakesTheText) {
  v1::JobSpec spec;
  const absl::Status status =
      ApplyOverride(absl::StrCat("dataset.csv.delimiter=", GetParam().assignment), &spec);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(spec.dataset().csv().delimiter(), GetParam().result);
}

INSTANTIATE_TEST_SUITE_P(Cases, TextOverrideTest,
                         ::testing::Values(Case{",", ","}, Case{"#", "#"}, Case{"|", "|"}, Case{":", ":"},
                                           Case{"-", "-"}, Case{"~", "~"}, Case{"[", "["}, Case{"\"", "\""},
                                           Case{"'", "'"}, Case{"!", "!"}, Case{"\t", "\t"}, Case{" ", " "},
                                           Case{"\\t", "\\t"}, Case{"a #b", "a #b"}, Case{" a: b ", "a: b"},
                                           Case{"\",\"", ","}, Case{"'#'", "#"}, Case{"\"\\t\"", "\t"},
                                           Case{"'it''s'", "it's"}, Case{"007", "007"},
                                           Case{"it's", "it's"}));

TEST(ApplyOverride, AnElementOfAListOfTextsTakesTheText) {
  v1::JobSpec spec;
  ASSERT_TRUE(ApplyOverride("dataset.csv.missing_texts=[NA, x]", &spec).ok());
  ASSERT_TRUE(ApplyOverride("dataset.csv.missing_texts[1]=#", &spec).ok());
  EXPECT_THAT(spec.dataset().csv().missing_texts(), ::testing::ElementsAre("NA", "#"));
}

TEST(ApplyOverride, NoReplicasAreRefused) {
  v1::JobSpec spec;
  const absl::Status status = ApplyOverride("replicas.count=0", &spec);
  EXPECT_EQ(status.message(), "replicas.count: is 0; want at least 1, or leave it out");
  EXPECT_TRUE(ApplyOverride("replicas.count=1", &spec).ok());
}

}  // namespace
}  // namespace tandem::client
