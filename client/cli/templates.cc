#include "client/cli/templates.h"

namespace tandem::cli {
namespace {

constexpr char kDl4j[] = {
#include "client/cli/templates/dl4j.inc"
};
constexpr char kDjl[] = {
#include "client/cli/templates/djl.inc"
};
constexpr char kLenet[] = {
#include "client/cli/templates/lenet.inc"
};
constexpr char kLenetMnist[] = {
#include "client/cli/templates/lenet-mnist.inc"
};
constexpr char kMatlab[] = {
#include "client/cli/templates/matlab.inc"
};
constexpr char kMlp[] = {
#include "client/cli/templates/mlp.inc"
};
constexpr char kMxnet[] = {
#include "client/cli/templates/mxnet.inc"
};
constexpr char kSynthetic[] = {
#include "client/cli/templates/synthetic.inc"
};

}  // namespace

const std::vector<JobTemplate>& JobTemplates() {
  static const auto& templates = *new std::vector<JobTemplate>{
      {"lenet", "LeNet on Fashion-MNIST, two replicas", kLenet},
      {"lenet-mnist", "LeNet on MNIST, two replicas", kLenetMnist},
      {"mlp", "fully connected layers on Fashion-MNIST", kMlp},
      {"synthetic", "a small network on synthetic data, without files", kSynthetic},
      {"djl", "DJL's ResNet-18 on Fashion-MNIST", kDjl},
      {"dl4j", "Deeplearning4j's LeNet on MNIST, two replicas, averaged every 3 iterations", kDl4j},
      {"matlab", "MATLAB's multi-GPU example on CIFAR-10, with augmentation", kMatlab},
      {"mxnet", "MXNet's LeNet on Fashion-MNIST", kMxnet},
  };
  return templates;
}

}  // namespace tandem::cli
