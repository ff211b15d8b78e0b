#ifndef TANDEM_TESTS_BENCH_NETWORKS_H_
#define TANDEM_TESTS_BENCH_NETWORKS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Returns a network for images of ten classes: "lenet" (Deeplearning4j's MNIST example) or "resnet18" (Dive
// into Deep Learning, 9.3) for images [1, 28, 28], or "matlab-cifar" (MATLAB's parallel CIFAR-10 example) for
// [3, 32, 32], or "mini-gpt" (a character-level GPT) for 128 tokens of 256. INVALID_ARGUMENT for another
// name.
absl::StatusOr<v1::Model> NetworkNamed(absl::string_view name);

// Returns a job that trains `network` with softmax cross-entropy. The optimizer is Nesterov's momentum if
// `momentum` is above 0, otherwise plain gradient descent. Its data set is synthetic; the caller adds the
// number of samples and the replicas.
absl::StatusOr<v1::JobSpec> JobOf(absl::string_view network, double learning_rate, double momentum);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCH_NETWORKS_H_
