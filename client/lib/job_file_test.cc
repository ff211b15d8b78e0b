#include "client/lib/job_file.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem::client {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

// Returns the message of the error, or "".
std::string Error(const std::string& content, const std::string& name = "job.yaml") {
  return std::string(ParseJobFile(content, name).status().message());
}

v1::JobSpec Parse(const std::string& content, const std::string& name = "job.yaml") {
  const absl::StatusOr<JobFile> file = ParseJobFile(content, name);
  EXPECT_TRUE(file.ok()) << file.status() << "\n" << content;
  return file.ok() ? file->spec : v1::JobSpec();
}

v1::JobSpec Lenet() {
  v1::JobSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        name: "lenet-fashion-mnist"
        dataset { name: "fashion-mnist" }
        model {
          input { shape: [ 1, 28, 28 ] }
          layers {
            conv2d {
              filters: 20
              kernel: [ 5, 5 ]
            }
          }
          layers { max_pool2d { size: [ 2, 2 ] } }
          layers {
            conv2d {
              filters: 50
              kernel: [ 5, 5 ]
            }
          }
          layers { max_pool2d { size: [ 2, 2 ] } }
          layers { dense { units: 500 activation: ACTIVATION_RELU } }
          layers { dense { units: 10 } }
        }
        training {
          loss { softmax_cross_entropy {} }
          optimizer { nesterov { learning_rate: 0.02 momentum: 0.9 } }
          global_batch_size: 128
          epochs: 3
          seed: 123
        }
        replicas { count: 2 })pb",
      &spec));
  return spec;
}

TEST(JobFileTest, ReadsTheExamples) {
  const absl::StatusOr<JobFile> fashion = ReadJobFile("deploy/examples/lenet-fashion-mnist.yaml");
  ASSERT_TRUE(fashion.ok()) << fashion.status();
  EXPECT_TRUE(MessageDifferencer::Equals(fashion->spec, Lenet())) << fashion->spec.DebugString();
  const absl::StatusOr<JobFile> mnist = ReadJobFile("deploy/examples/lenet-mnist.yaml");
  ASSERT_TRUE(mnist.ok()) << mnist.status();
  v1::JobSpec expected = Lenet();
  expected.set_name("lenet-mnist");
  expected.mutable_dataset()->set_name("mnist");
  EXPECT_TRUE(MessageDifferencer::Equals(mnist->spec, expected)) << mnist->spec.DebugString();
  const absl::StatusOr<JobFile> resnet = ReadJobFile("deploy/examples/resnet18-fashion-mnist.yaml");
  ASSERT_TRUE(resnet.ok()) << resnet.status();
  ASSERT_EQ(resnet->spec.model().layers_size(), 11);
  const v1::Repeat& repeat = resnet->spec.model().layers(2).repeat();
  EXPECT_EQ(repeat.count(), 2);
  EXPECT_EQ(repeat.layers(0).residual().layers(3).kind_case(), v1::Layer::kBatchNorm);
  for (const char* name :
       {"lenet-fashion-mnist-mxnet", "lenet-mnist-dl4j", "matlab-cifar-10", "tabular-regression"}) {
    const absl::StatusOr<JobFile> file = ReadJobFile("deploy/examples/" + std::string(name) + ".yaml");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->spec.name(), name);
  }
}

TEST(JobFileTest, ReadsPairsOfEscapesInJson) {
  EXPECT_EQ(Parse(R"({"name": "a\\\ud83d\ude00\ud834\udd1e \u00e9 \\ud83d\\ude00"})").name(),
            "a\\\xF0\x9F\x98\x80\xF0\x9D\x84\x9E \xC3\xA9 \\ud83d\\ude00");
  for (const char* half :
       {R"({"name": "\ud83d"})", R"({"name": "\ude00\ud83d"})", R"({"name": "\ud83d\u0041"})"}) {
    EXPECT_THAT(Error(half), HasSubstr("invalid unicode"));
  }
}

TEST(JobFileTest, JsonAndTextProtoSayTheSame) {
  std::string json, snake_json, text;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(Lenet(), &json).ok());
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(Lenet(), &snake_json, options).ok());
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(Lenet(), &text));
  for (const char* name : {"job.json", "job", "job.txt"}) {
    EXPECT_TRUE(MessageDifferencer::Equals(Parse(json, name), Lenet())) << name << json;
    EXPECT_TRUE(MessageDifferencer::Equals(Parse(snake_json, name), Lenet())) << name;
  }
  for (const char* name :
       {"job.textproto", "job.txtpb", "job.pbtxt", "job.PROTOTXT", "job", "standard input"}) {
    EXPECT_TRUE(MessageDifferencer::Equals(Parse(text, name), Lenet())) << name;
  }
}

// The text after "training:" and its expected result.
struct GoodCase {
  const char* yaml;
  const char* text;
};

class GoodJobFileTest : public ::testing::TestWithParam<GoodCase> {};

TEST_P(GoodJobFileTest, IsReadAs) {
  v1::JobSpec expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(GetParam().text, &expected));
  const v1::JobSpec spec = Parse(GetParam().yaml);
  EXPECT_TRUE(MessageDifferencer::Equals(spec, expected)) << GetParam().yaml << "\n" << spec.DebugString();
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoodJobFileTest,
    ::testing::Values(
        GoodCase{"name: 5", "name: '5'"}, GoodCase{"name: \"a b\"", "name: 'a b'"},
        GoodCase{"name: 'true'", "name: 'true'"}, GoodCase{"\xEF\xBB\xBFname: x", "name: 'x'"},
        GoodCase{"---\nname: x\n", "name: 'x'"},
        GoodCase{"name: x\r\nreplicas: {count: 2}\r\n", "name: 'x' replicas { count: 2 }"},
        GoodCase{"training: {seed: 18446744073709551615}", "training { seed: 18446744073709551615 }"},
        GoodCase{"training: {epochs: 1e3}", "training { epochs: 1000 }"},
        GoodCase{"training: {epochs: 2.0}", "training { epochs: 2 }"},
        GoodCase{"training: {seed: 9007199254740993.0}", "training { seed: 9007199254740993 }"},
        GoodCase{"training: {seed: 18446744073709551615.00}", "training { seed: 18446744073709551615 }"},
        GoodCase{"training: {epochs: '7'}", "training { epochs: 7 }"},
        GoodCase{"training: {epochs: -1}", "training { epochs: -1 }"},
        GoodCase{"training: {globalBatchSize: 4}", "training { global_batch_size: 4 }"},
        GoodCase{"training: {shuffle: false}", "training { shuffle: false }"},
        GoodCase{"training: {metrics: accuracy}", "training { metrics: METRIC_ACCURACY }"},
        GoodCase{"training: {metrics: [accuracy]}", "training { metrics: METRIC_ACCURACY }"},
        GoodCase{"training: {metrics: [METRIC_ACCURACY]}", "training { metrics: METRIC_ACCURACY }"},
        GoodCase{"training: {metrics: []}", "training {}"},
        GoodCase{"training: {optimizer: {sgd: {learning_rate: 1}}}",
                 "training { optimizer { sgd { learning_rate: 1 } } }"},
        GoodCase{"training: {optimizer: {sgd: {learning_rate: 1e-3}}}",
                 "training { optimizer { sgd { learning_rate: 0.001 } } }"},
        GoodCase{"training: {optimizer: {sgd: {learning_rate: 0}}}",
                 "training { optimizer { sgd { learning_rate: 0 } } }"},
        GoodCase{"training:\n  loss:\n    softmax_cross_entropy:\n",
                 "training { loss { softmax_cross_entropy {} } }"},
        GoodCase{"training: {loss: softmax_cross_entropy}", "training { loss { softmax_cross_entropy {} } }"},
        GoodCase{"model: {layers: [flatten]}", "model { layers { flatten {} } }"},
        GoodCase{"model: {layers: [{flatten: }]}", "model { layers { flatten {} } }"},
        GoodCase{"model: {layers: [{name: a, inputs: input, conv2d: {kernel: 5}}]}",
                 "model { layers { name: 'a' inputs: 'input' conv2d { kernel: 5 } } }"},
        GoodCase{"model: {layers: [{conv2d: {use_bias: true, padding_mode: same}}]}",
                 "model { layers { conv2d { use_bias: true padding_mode: PADDING_MODE_SAME } } }"},
        GoodCase{"model: {layers: [{dense: {activation: RELU, weight_initializer: he}}]}",
                 "model { layers { dense { activation: ACTIVATION_RELU weight_initializer { he {} } } } }"},
        GoodCase{"model: {layers: [&a {dense: {units: 2}}, *a]}",
                 "model { layers { dense { units: 2 } } layers { dense { units: 2 } } }"},
        GoodCase{"replicas: {}\n", "replicas {}"},
        GoodCase{"model: {template: {lenet: {}}}", "model { template { lenet {} } }"},
        GoodCase{"replicas: {all_reduce: {}, device_kind: cpu}",
                 "replicas { all_reduce {} device_kind: DEVICE_KIND_CPU }"},
        GoodCase{"dataset: {normalization: {mean: 0.5, standard_deviation: [0.25]}}",
                 "dataset { normalization { mean: 0.5 standard_deviation: 0.25 } }"},
        GoodCase{"{\n\t\"name\": \"x\",\n\t\"replicas\": {\"count\": 3}\n}",
                 "name: 'x' replicas { count: 3 }"}));

struct BadCase {
  const char* yaml;
  const char* message;
};

class BadJobFileTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadJobFileTest, IsRefusedWith) {
  EXPECT_EQ(Error(GetParam().yaml), GetParam().message) << GetParam().yaml;
}

INSTANTIATE_TEST_SUITE_P(
    Names, BadJobFileTest,
    ::testing::Values(
        BadCase{"model:\n  layers:\n  - conv2d: {filters: 2}\n  - max_pol2d: {size: 2}\n",
                "job.yaml:4:5: model.layers[1].max_pol2d: unknown field; did you mean `max_pool2d`?"},
        BadCase{"training: {epoch: 3}",
                "job.yaml:1:12: training.epoch: unknown field; did you mean `epochs`?"},
        BadCase{"training: {batch_size: 3}",
                "job.yaml:1:12: training.batch_size: unknown field; did you mean `global_batch_size`?"},
        BadCase{"zzz: 1",
                "job.yaml:1:1: zzz: unknown field; known here: name, dataset, model, training, replicas, "
                "checkpoints, initial_weights, frozen_layers, time_limit_seconds, cluster, priority, "
                "preemptible, "
                "gpu, max_restarts, device_share"},
        BadCase{"training: {loss: {softmax_cross_entropy: {smoothing: 1}}}",
                "job.yaml:1:43: training.loss.softmax_cross_entropy.smoothing: unknown field; did you mean "
                "`label_smoothing`?"},
        BadCase{"training: {optimizer: {sgd: {momentum: 0.9}}}",
                "job.yaml:1:30: training.optimizer.sgd.momentum: unknown field; `momentum`, `nesterov`, "
                "`rmsprop`, `muon` have it; known here: learning_rate, weight_decay"},
        BadCase{"training: {loss: {mse: {x: 1}}}",
                "job.yaml:1:25: training.loss.mse.x: unknown field; nothing can be set here"},
        BadCase{"name: a\nname: b\n", "job.yaml:2:1: name: given twice"},
        BadCase{"training: {global_batch_size: 1, globalBatchSize: 2}",
                "job.yaml:1:34: training.global_batch_size: given twice"},
        BadCase{"model: {layers: [{dense: {units: 1}, flatten: {}}]}",
                "job.yaml:1:38: model.layers[0].flatten: `dense` is given already, and only one of conv2d, "
                "max_pool2d, "
                "average_pool2d, dense, flatten, activation, batch_norm, add, global_average_pool2d, "
                "residual, repeat, softmax, log_softmax, multiply, concat, dropout, reshape, upsample, "
                "group_norm, conv_transpose2d, global_max_pool2d, slice, embedding, positional_embedding, "
                "layer_norm, lstm, multi_head_attention, embed_categories can be"},
        BadCase{"a: &a {name: x}\n<<: *a\n",
                "job.yaml:1:1: a: unknown field; known here: name, dataset, model, training, replicas, "
                "checkpoints, initial_weights, frozen_layers, time_limit_seconds, cluster, priority, "
                "preemptible, "
                "gpu, max_restarts, device_share\n"
                "job.yaml:2:1: <<: merge keys are not supported; write the fields out"},
        BadCase{"? [name]\n: x\n", "job.yaml:1:3: a key must be a name, not a list"}));

INSTANTIATE_TEST_SUITE_P(
    Values, BadJobFileTest,
    ::testing::Values(
        BadCase{"training: {epochs: three}",
                "job.yaml:1:20: training.epochs: want a whole number, got `three`"},
        BadCase{"training: {epochs: 1.5}", "job.yaml:1:20: training.epochs: want a whole number, got `1.5`"},
        BadCase{"training: {seed: 9007199254740993.5}",
                "job.yaml:1:18: training.seed: want a whole number, got `9007199254740993.5`"},
        BadCase{"training: {seed: 9007199254740993e0}",
                "job.yaml:1:18: training.seed: want a whole number, got `9007199254740993e0`"},
        BadCase{"training: {epochs: 9223372036854775808.0}",
                "job.yaml:1:20: training.epochs: want a whole number from -9223372036854775808 to "
                "9223372036854775807, "
                "got `9223372036854775808.0`"},
        BadCase{"training: {epochs: 1e300}",
                "job.yaml:1:20: training.epochs: want a whole number, got `1e300`"},
        BadCase{"training: {epochs: 9223372036854775808}",
                "job.yaml:1:20: training.epochs: want a whole number from -9223372036854775808 to "
                "9223372036854775807, "
                "got `9223372036854775808`"},
        BadCase{"training: {seed: -1}",
                "job.yaml:1:18: training.seed: want a whole number from 0 to 18446744073709551615, got `-1`"},
        BadCase{"replicas: {count: 2147483648}",
                "job.yaml:1:19: replicas.count: want a whole number from -2147483648 to 2147483647, got "
                "`2147483648`"},
        BadCase{"replicas: {count: [2]}", "job.yaml:1:19: replicas.count: want a whole number, got a list"},
        BadCase{"replicas: {count: {n: 2}}",
                "job.yaml:1:19: replicas.count: want a whole number, got a mapping"},
        BadCase{"replicas:\n  count:\n",
                "job.yaml:2:3: replicas.count: has no value; want a whole number, or leave it out"},
        BadCase{"replicas: {count: ~}",
                "job.yaml:1:12: replicas.count: has no value; want a whole number, or leave it out"},
        BadCase{"replicas: {count: ''}", "job.yaml:1:19: replicas.count: want a whole number, got ``"},
        BadCase{"training: {optimizer: {sgd: {learning_rate: fast}}}",
                "job.yaml:1:45: training.optimizer.sgd.learning_rate: want a number, got `fast`"},
        BadCase{"training: {optimizer: {sgd: {learning_rate: inf}}}",
                "job.yaml:1:45: training.optimizer.sgd.learning_rate: want a finite number, got `inf`"},
        BadCase{"training: {optimizer: {sgd: {learning_rate: .nan}}}",
                "job.yaml:1:45: training.optimizer.sgd.learning_rate: want a number, got `.nan`"},
        BadCase{"training: {optimizer: {sgd: {learning_rate: 1e999}}}",
                "job.yaml:1:45: training.optimizer.sgd.learning_rate: want a finite number, got `1e999`"},
        BadCase{"training: {shuffle: yes}", "job.yaml:1:21: training.shuffle: want true or false, got `yes`"},
        BadCase{"model: {layers: [{dense: {activation: rely}}]}",
                "job.yaml:1:39: model.layers[0].dense.activation: want one of identity, relu, leaky_relu, "
                "elu, gelu, gelu_tanh, sigmoid, tanh, silu, "
                "softplus, hard_swish, selu, got `rely`; did you mean `relu`?"},
        BadCase{"model: {layers: [{dense: {activation: gelu9000}}]}",
                "job.yaml:1:39: model.layers[0].dense.activation: want one of identity, relu, leaky_relu, "
                "elu, gelu, gelu_tanh, sigmoid, tanh, silu, "
                "softplus, hard_swish, selu, got `gelu9000`; did you mean `elu`?"},
        BadCase{
            "replicas: {device_kind: tpu}",
            "job.yaml:1:25: replicas.device_kind: want one of cpu, gpu, reference, any, got `tpu`; did you "
            "mean `cpu`?"}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, BadJobFileTest,
    ::testing::Values(
        BadCase{"model: {layers: {dense: {units: 1}}}",
                "job.yaml:1:17: model.layers: want a list (each element begins with `-`), got a mapping"},
        BadCase{"model: {layers: dense}",
                "job.yaml:1:17: model.layers: want a list (each element begins with `-`), got `dense`"},
        BadCase{"model:\n  layers:\n",
                "job.yaml:2:3: model.layers: has no value; want a list (each element a mapping), or leave it "
                "out"},
        BadCase{"training:\n  weight_average:\n",
                "job.yaml:2:3: training.weight_average: has no value; write {} for its defaults, or leave it "
                "out"},
        BadCase{"model: {layers: [flatten, ~]}",
                "job.yaml:1:27: model.layers[1]: has no value; write {} for its defaults, or leave it out"},
        BadCase{"model: {layers: [[1]]}", "job.yaml:1:18: model.layers[0]: want a mapping, got a list"},
        BadCase{"model: {layers: [dens]}",
                "job.yaml:1:18: model.layers[0]: want a mapping, got `dens`; did you mean `dense`?"},
        BadCase{
            "model: {layers: [activation: relu, dropout: 0.5, flatten, conv2d: 8]}",
            "job.yaml:1:30: model.layers[0].activation: want a mapping such as {function: relu}, got `relu`\n"
            "job.yaml:1:45: model.layers[1].dropout: want a mapping such as {rate: 0.5}, got `0.5`\n"
            "job.yaml:1:67: model.layers[3].conv2d: want a mapping, got `8`"},
        BadCase{"model: {input: {shape: [1, [2], x]}}",
                "job.yaml:1:28: model.input.shape[1]: want a whole number, got a list\n"
                "job.yaml:1:33: model.input.shape[2]: want a whole number, got `x`"},
        BadCase{"dataset: fashion-mnist",
                "job.yaml:1:10: dataset: want a mapping such as {name: fashion-mnist}, got `fashion-mnist`"},
        BadCase{"model: lenet",
                "job.yaml:1:8: model: want a mapping such as {template: {lenet: {}}}, got `lenet`"},
        BadCase{"model: resnet_18",
                "job.yaml:1:8: model: want a mapping such as {template: {resnet18: {}}}, got `resnet_18`"},
        BadCase{"model: quux",
                "job.yaml:1:8: model: want a mapping such as {template: {lenet: {}}}, got `quux`; of "
                "templates, known here: lenet, mlp, resnet18, resnet34, resnet50, vgg11, matlab_cifar, "
                "mini_gpt"},
        BadCase{"model: {layers: [quux]}", "job.yaml:1:18: model.layers[0]: want a mapping, got `quux`"},
        BadCase{"training: 5", "job.yaml:1:11: training: want a mapping, got `5`"},
        BadCase{"- name: x", "job.yaml:1:1: a job is a mapping: dataset:, model:, training:"},
        BadCase{"just text", "job.yaml:1:1: a job is a mapping: dataset:, model:, training:"},
        BadCase{"", "job.yaml: the file is empty"},
        BadCase{" \n# only a comment\n", "job.yaml: the file is empty"},
        BadCase{"~", "job.yaml: the file is empty"},
        BadCase{"name: a\n---\nname: b\n",
                "job.yaml: several documents (parts begun by `---`); a job file has one"},
        // yaml-cpp's LoadAll makes documents without end from this text.
        BadCase{", name: a\ndataset:\n",
                "job.yaml: several documents (parts begun by `---`); a job file has one"}));

INSTANTIATE_TEST_SUITE_P(
    Syntax, BadJobFileTest,
    ::testing::Values(
        BadCase{
            "training:\n\tepochs: 1\n",
            "job.yaml:2:8: not valid YAML or JSON: illegal map value; tabs cannot indent YAML, use spaces"},
        BadCase{"a: 1\n b: 2\n",
                "job.yaml:2:3: not valid YAML or JSON: illegal map value; is the line indented as its "
                "neighbours, with one "
                "`name: value`?"},
        BadCase{"name: [1, 2\n", "job.yaml:2:1: not valid YAML or JSON: end of sequence flow not found"},
        BadCase{"training: {seed: 1}\nname: \"a\nreplicas: {count: 2}\n",
                "job.yaml:2:7: not valid YAML or JSON: a quote begins here and does not end"},
        BadCase{"name: 'a''\n", "job.yaml:1:7: not valid YAML or JSON: a quote begins here and does not end"},
        BadCase{"name: *x\n", "job.yaml:1:7: not valid YAML or JSON: the referenced anchor is not defined"}));

TEST(BadJobFileTest, AllProblemsAreSaidAtOnceInOrder) {
  EXPECT_EQ(Error("nam: x\nmodel:\n  layers:\n  - dense: {unit: 5}\ntraining:\n  epochs: many\n"),
            "job.yaml:1:1: nam: unknown field; did you mean `name`?\n"
            "job.yaml:4:13: model.layers[0].dense.unit: unknown field; did you mean `units`?\n"
            "job.yaml:6:11: training.epochs: want a whole number, got `many`");
}

TEST(BadJobFileTest, ManyProblemsAreCutOff) {
  std::string text = "model:\n  layers:\n";
  for (int i = 0; i < 1000; ++i) text += "  - dens: {}\n";
  const std::string message = Error(text);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n') + 1, 20);
}

TEST(BadJobFileTest, TextProtoSaysWhereAndWhatWasMeant) {
  EXPECT_EQ(Error("name: 'x'\nmodel {\n  layers { max_pol2d { size: 2 } }\n}\n", "job.textproto"),
            "job.textproto:3:22: max_pol2d: unknown field of tandem.v1.Layer; did you mean `max_pool2d`?");
  EXPECT_THAT(Error("name: 'x'\nname: 'y'\n", "job.textproto"), HasSubstr("job.textproto:2:"));
  EXPECT_THAT(Error("model {", "job.textproto"), HasSubstr("job.textproto:1:8: "));
}

TEST(HostileJobFileTest, DeepNestingIsRefused) {
  for (const int depth : {100, 450, 1000, 100'000}) {
    const std::string deep = absl::StrCat("model: ", std::string(depth, '['), std::string(depth, ']'));
    EXPECT_FALSE(ParseJobFile(deep, "job.yaml").ok()) << depth;
    const std::string braces =
        absl::StrCat("{\"model\":", std::string(depth, '{'), std::string(depth, '}'), "}");
    EXPECT_FALSE(ParseJobFile(braces, "job.json").ok()) << depth;
  }
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "model { layers ";
  EXPECT_FALSE(ParseJobFile(text, "job.textproto").ok());
}

TEST(HostileJobFileTest, AliasesCannotMultiply) {
  // Each level has the previous level ten times: a billion values if they were written out.
  std::string text = "model:\n  layers:\n  - conv2d:\n      kernel: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int level = 1; level <= 8; ++level) {
    absl::StrAppend(&text, "  - &l", level, " [");
    for (int i = 0; i < 10; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", "*l", level - 1);
    absl::StrAppend(&text, "]\n");
  }
  EXPECT_FALSE(ParseJobFile(text, "job.yaml").ok());
  // The same with values that the field accepts.
  std::string layers = "model:\n  layers:\n  - &a {conv2d: {kernel: &k [1, 1";
  for (int i = 0; i < 2000; ++i) layers += ", 1";
  layers += "]}}\n";
  for (int i = 0; i < 200; ++i) layers += "  - *a\n";
  EXPECT_THAT(Error(layers), HasSubstr("more than 100000 values, aliases counted each time"));
  EXPECT_FALSE(ParseJobFile("model: {layers: &a [*a]}", "job.yaml").ok());
  EXPECT_FALSE(ParseJobFile("model: &a {layers: [*a]}", "job.yaml").ok());
}

TEST(HostileJobFileTest, LargeFilesAndOtherFilesAreRefused) {
  EXPECT_EQ(Error(std::string(2 << 20, ' ')),
            "cannot read job.yaml: a job file may have at most 1048576 bytes; make it smaller");
  EXPECT_EQ(Error(std::string("name: x\n\0", 9)), "job.yaml: a zero byte at offset 8: this is no text file");
  EXPECT_EQ(Error("name: x\xFF"), "job.yaml: the byte at offset 7 is not UTF-8");
  EXPECT_EQ(Error("name: \xC0\x80"), "job.yaml: the byte at offset 6 is not UTF-8");
  EXPECT_EQ(Error("name: \xED\xA0\x80"), "job.yaml: the byte at offset 6 is not UTF-8");
  EXPECT_EQ(Error("name: \xE2\x82"), "job.yaml: the byte at offset 6 is not UTF-8");
  EXPECT_EQ(Error("name: \xE2\x82\xAC \xF0\x9F\x98\x80"), "");
  EXPECT_EQ(ReadJobFile("/dev/zero").status().message(),
            "cannot read /dev/zero: it has more than 1048576 bytes; make it smaller");
  EXPECT_EQ(ReadJobFile("/no/job.yaml").status().message(),
            "cannot read /no/job.yaml: No such file or directory");
  EXPECT_EQ(ReadJobFile("/proc").status().message(), "cannot read /proc: Is a directory");
}

TEST(HostileJobFileTest, KeysOfAnyKindAreShownHarmlessly) {
  const std::string message = Error(absl::StrCat("\"\\x1b[31m", std::string(500, 'x'), "\": 1"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 300);  // Shorter than a list of all field names.
}

TEST(DescribeFieldTest, PointsIntoTheFile) {
  const absl::StatusOr<JobFile> file =
      ParseJobFile("name: x\nmodel:\n  layers:\n  - dense: {units: 0}\n", "job.yaml");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(DescribeField(*file, "spec.model.layers[0].dense.units"),
            "job.yaml:4:13: model.layers[0].dense.units");
  EXPECT_EQ(DescribeField(*file, "spec.model.layers[0].dense.activation"),
            "job.yaml:4:5: model.layers[0].dense.activation");
  EXPECT_EQ(DescribeField(*file, "spec.training.epochs"), "job.yaml: training.epochs");
  EXPECT_EQ(DescribeField(*file, "spec"), "job.yaml");
  EXPECT_EQ(DescribeField(*file, ""), "job.yaml");
}

TEST(JobFile, NoReplicasAreRefused) {
  EXPECT_EQ(ParseJobFile("name: a\nreplicas: {count: 0}\n", "job.yaml").status().message(),
            "job.yaml:2:12: replicas.count: is 0; want at least 1, or leave it out");
}

}  // namespace
}  // namespace tandem::client
