#ifndef TANDEM_TESTS_INTEGRATION_JOB_SPECS_H_
#define TANDEM_TESTS_INTEGRATION_JOB_SPECS_H_

#include <cstdint>
#include <string>

#include "tandem/v1/job.pb.h"

namespace tandem::testing {

// Options of a small job on synthetic data: a dense network on [1, 8, 8] and four classes.
struct SmallJobOptions {
  int64_t epochs = 2;
  int64_t train_samples = 256;
  int64_t batch = 32;
  int replicas = 1;
  // 0: reports by time, as by default.
  int64_t report_every_steps = 0;
  uint64_t seed = 1;
};

v1::JobSpec SmallJob(const SmallJobOptions& options);

// Returns a job of convolutions on [1, 28, 28] with steps of some milliseconds, one replica and a report at
// every step. It has `steps` steps (rounded up to hundreds), a hundred in each epoch.
v1::JobSpec LongJob(int64_t steps);

// Returns SmallJob as a job file in YAML.
std::string SmallJobYaml(const SmallJobOptions& options);

// Returns LeNet on the first samples of Fashion-MNIST, as a job file in YAML.
std::string FashionMnistYaml(int64_t train_limit, int64_t validation_limit, int epochs, int replicas);

}  // namespace tandem::testing

#endif  // TANDEM_TESTS_INTEGRATION_JOB_SPECS_H_
