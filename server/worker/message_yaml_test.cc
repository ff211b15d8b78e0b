#include "server/worker/message_yaml.h"

#include <yaml-cpp/yaml.h>

#include <cctype>
#include <string>

#include "gtest/gtest.h"
#include "tandem/v1/job.pb.h"

namespace tandem {
namespace {

TEST(MessageYamlTest, WritesAJobAsAUserWould) {
  v1::JobSpec spec;
  spec.set_name("lenet");
  spec.mutable_dataset()->set_name("fashion-mnist");
  v1::Model& model = *spec.mutable_model();
  for (const int extent : {1, 28, 28}) model.mutable_input()->add_shape(extent);
  v1::Conv2d& conv2d = *model.add_layers()->mutable_conv2d();
  conv2d.set_filters(20);
  conv2d.add_kernel(5);
  conv2d.add_kernel(5);
  model.add_layers()->mutable_flatten();
  model.add_layers();
  v1::Training& training = *spec.mutable_training();
  training.mutable_loss()->mutable_softmax_cross_entropy();
  training.mutable_optimizer()->mutable_nesterov()->set_learning_rate(0.02);
  training.set_global_batch_size(128);
  training.set_seed(18446744073709551615u);
  training.set_shuffle(false);
  training.add_metrics(v1::METRIC_ACCURACY);
  spec.mutable_replicas()->set_device_kind(v1::DEVICE_KIND_CPU);

  EXPECT_EQ(MessageToYaml(spec), R"(name: lenet
dataset:
  name: fashion-mnist
model:
  input:
    shape: [1, 28, 28]
  layers:
  - conv2d:
      filters: 20
      kernel: [5, 5]
  - flatten: {}
  - {}
training:
  loss:
    softmax_cross_entropy: {}
  optimizer:
    nesterov:
      learning_rate: 0.02
  global_batch_size: 128
  seed: 18446744073709551615
  shuffle: false
  metrics: [METRIC_ACCURACY]
replicas:
  device_kind: DEVICE_KIND_CPU
)");
}

TEST(MessageYamlTest, StringsReadBackAsTheyWere) {
  for (const std::string name : {"plain",       "/data/with-dash_and.dot",
                                 "true",        "No",
                                 "null",        "1.5",
                                 "0x10",        "~",
                                 "a: b",        "a #b",
                                 "- a",         "\"q\"",
                                 "back\\slash", "tab\tnew\nline",
                                 "Zürich",      " space",
                                 "[1]",         "{a}",
                                 "*a",          "&a",
                                 "@a",          "1e3",
                                 "é",           "2026-11-20"}) {
    v1::JobSpec spec;
    spec.mutable_dataset()->set_name(name);
    const YAML::Node node = YAML::Load(MessageToYaml(spec))["dataset"]["name"];
    EXPECT_EQ(node.as<std::string>(), name);
    // Quoted text has the tag "!". Text that could be a number or a word has "?".
    EXPECT_TRUE(node.Tag() == "!" || std::isalpha(name[0]) || name[0] == '/') << name;
  }
}

TEST(MessageYamlTest, NumbersReadBackExactly) {
  for (const double rate : {0.1, 1.0 / 3, 1e-300, 123456789.125, 0.02, 1e22, 5e-324}) {
    v1::Sgd sgd;
    sgd.set_learning_rate(rate);
    EXPECT_EQ(YAML::Load(MessageToYaml(sgd))["learning_rate"].as<double>(), rate) << MessageToYaml(sgd);
  }
  EXPECT_EQ(MessageToYaml(v1::Sgd()), "{}\n");
}

}  // namespace
}  // namespace tandem
