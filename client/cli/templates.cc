#include "client/cli/templates.h"

namespace tandem::cli {
namespace {

constexpr char kLenet[] = {
#include "client/cli/templates/lenet.inc"
};
constexpr char kLenetMnist[] = {
#include "client/cli/templates/lenet-mnist.inc"
};
constexpr char kMlp[] = {
#include "client/cli/templates/mlp.inc"
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
  };
  return templates;
}

}  // namespace tandem::cli
