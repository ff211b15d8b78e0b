#include "tests/integration/job_specs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"

namespace tandem::testing {

v1::JobSpec SmallJob(const SmallJobOptions& options) {
  v1::JobSpec spec;
  spec.set_name("small");
  v1::SyntheticSource& data = *spec.mutable_dataset()->mutable_synthetic();
  for (const int extent : {1, 8, 8}) {
    data.add_shape(extent);
    spec.mutable_model()->mutable_input()->add_shape(extent);
  }
  data.set_classes(4);
  data.set_train_samples(options.train_samples);
  data.set_validation_samples(64);
  v1::Dense& hidden = *spec.mutable_model()->add_layers()->mutable_dense();
  hidden.set_units(16);
  hidden.set_activation(v1::ACTIVATION_RELU);
  spec.mutable_model()->add_layers()->mutable_dense()->set_units(4);
  v1::Training& training = *spec.mutable_training();
  training.mutable_loss()->mutable_softmax_cross_entropy();
  training.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.1);
  training.set_global_batch_size(options.batch);
  training.set_epochs(options.epochs);
  training.set_seed(options.seed);
  if (options.report_every_steps > 0) training.mutable_report()->set_every_steps(options.report_every_steps);
  spec.mutable_replicas()->set_count(options.replicas);
  return spec;
}

v1::JobSpec LongJob(int64_t steps) {
  constexpr int64_t kBatch = 16;
  v1::JobSpec spec = SmallJob({.epochs = (steps + 99) / 100,
                               .train_samples = 100 * kBatch,
                               .batch = kBatch,
                               .report_every_steps = 1});
  spec.set_name("long");
  v1::SyntheticSource& data = *spec.mutable_dataset()->mutable_synthetic();
  data.clear_shape();
  v1::Model& model = *spec.mutable_model();
  model.Clear();
  for (const int extent : {1, 28, 28}) {
    data.add_shape(extent);
    model.mutable_input()->add_shape(extent);
  }
  v1::Conv2d& convolution = *model.add_layers()->mutable_conv2d();
  convolution.set_filters(20);
  convolution.add_kernel(5);
  convolution.set_activation(v1::ACTIVATION_RELU);
  model.add_layers()->mutable_max_pool2d()->add_size(2);
  v1::Conv2d& second = *model.add_layers()->mutable_conv2d();
  second.set_filters(50);
  second.add_kernel(5);
  model.add_layers()->mutable_max_pool2d()->add_size(2);
  model.add_layers()->mutable_dense()->set_units(4);
  spec.mutable_training()->mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01);
  return spec;
}

std::string SmallJobYaml(const SmallJobOptions& options) {
  return absl::Substitute(R"(name: small
dataset:
  synthetic: {shape: [1, 8, 8], classes: 4, train_samples: $0, validation_samples: 64}
model:
  input: {shape: [1, 8, 8]}
  layers:
  - dense: {units: 16, activation: relu}
  - dense: {units: 4}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: $1
  epochs: $2
  seed: $3
$5replicas: {count: $4}
)",
                          options.train_samples, options.batch, options.epochs, options.seed,
                          options.replicas,
                          options.report_every_steps > 0
                              ? absl::StrCat("  report: {every_steps: ", options.report_every_steps, "}\n")
                              : "");
}

std::string FashionMnistYaml(int64_t train_limit, int64_t validation_limit, int epochs, int replicas) {
  return absl::Substitute(R"(name: lenet-fashion-mnist
dataset: {name: fashion-mnist, train_limit: $0, validation_limit: $1}
model:
  input: {shape: [1, 28, 28]}
  layers:
  - conv2d: {filters: 20, kernel: [5, 5]}
  - max_pool2d: {size: [2, 2]}
  - conv2d: {filters: 50, kernel: [5, 5]}
  - max_pool2d: {size: [2, 2]}
  - dense: {units: 500, activation: relu}
  - dense: {units: 10}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {nesterov: {learning_rate: 0.02, momentum: 0.9}}
  global_batch_size: 128
  epochs: $2
  seed: 123
replicas: {count: $3}
)",
                          train_limit, validation_limit, epochs, replicas);
}

}  // namespace tandem::testing
