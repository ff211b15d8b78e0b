#ifndef TANDEM_TESTS_BENCH_NETWORKS_H_
#define TANDEM_TESTS_BENCH_NETWORKS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The networks that are measured, for images of ten classes: "lenet" (Deeplearning4j's MNIST example) and
// "resnet18" (Dive into Deep Learning, 9.3) for images [1, 28, 28], "matlab-cifar" (MATLAB's parallel
// CIFAR-10 example) for [3, 32, 32]. INVALID_ARGUMENT for another name.
absl::StatusOr<v1::Model> NetworkNamed(absl::string_view name);

// A job that trains `network` with softmax cross-entropy and plain gradient descent, or with Nesterov's
// momentum where that is above 0; the data set and the replicas are the caller's.
absl::StatusOr<v1::JobSpec> JobOf(absl::string_view network, double learning_rate, double momentum);

}  // namespace tandem

#endif  // TANDEM_TESTS_BENCH_NETWORKS_H_
