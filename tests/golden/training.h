#ifndef TANDEM_TESTS_GOLDEN_TRAINING_H_
#define TANDEM_TESTS_GOLDEN_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/program.h"

namespace tandem {

// The training steps of a replica in a network or data_parallel case.
class GoldenTraining {
 public:
  // The scale of the replicas' gradients, which are summed.
  struct Scale {
    // The factor of the replica's gradients.
    double share = 1;
    // If the case's loss has weights: the number of replicas whose sum of weights divides the loss. 0:
    // `share` is used.
    int weighted_replicas = 0;
  };
  // `x` and `y` have a batch for each step.
  static absl::StatusOr<std::unique_ptr<GoldenTraining>> Create(const GoldenCase& golden,
                                                                std::unique_ptr<Device> device,
                                                                const GoldenTraining* like,
                                                                const Scale& scale, Tensor x, Tensor y);

  int64_t steps() const { return x_.shape()[0]; }
  absl::Status RunStep(int64_t step, Communicator* communicator = nullptr);
  // Replaces parameters and running statistics, and with `state` also the optimizer's state, by their means
  // over the replicas, weighted by `shares`. All replicas call this together.
  absl::Status Average(absl::Span<const double> shares, bool state, Communicator* communicator);

  // See Program::WrapCommunicator.
  std::unique_ptr<Communicator> WrapCommunicator(Communicator* host) {
    return program_.WrapCommunicator(host);
  }

  // Returns the loss of the newest step.
  absl::StatusOr<double> Loss() const;
  absl::StatusOr<Tensor> Logits() const { return program_.Output(logits_); }
  absl::StatusOr<Tensor> Gradient(size_t parameter) const { return program_.Output(grads_[parameter]); }
  absl::StatusOr<Tensor> Parameter(size_t parameter) const { return program_.Read(names_[parameter]); }
  // Returns the optimizer's state of the kind `state` ("momentum").
  absl::StatusOr<Tensor> State(const std::string& state, size_t parameter) const {
    return program_.Read(state + "/" + names_[parameter]);
  }
  absl::StatusOr<Tensor> Statistic(size_t statistic) const {
    return program_.Read(statistic_names_[statistic]);
  }
  // Return the names of the parameters, and of the running statistics.
  const std::vector<std::string>& names() const { return names_; }
  const std::vector<std::string>& statistic_names() const { return statistic_names_; }

 private:
  GoldenTraining(std::unique_ptr<Device> device, const GoldenTraining* like, Tensor x, Tensor y);
  absl::Status Build(const GoldenCase& golden, const Scale& scale);
  // Appends the loss, `loss_`. Returns the value to differentiate and the start of its gradient.
  absl::StatusOr<std::pair<ValueId, ValueId>> BuildLoss(const GoldenCase& golden, const Scale& scale,
                                                        ValueId target);

  const Tensor x_;
  const Tensor y_;
  Program program_;
  std::vector<std::string> names_;
  std::vector<std::string> statistic_names_;
  std::vector<ValueId> grads_;
  ValueId loss_ = kNoValue;
  ValueId logits_ = kNoValue;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_GOLDEN_TRAINING_H_
