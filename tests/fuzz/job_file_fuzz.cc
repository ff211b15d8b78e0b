// Job files and sweep files, as the command line reads them. The first byte chooses the format.

#include "absl/strings/str_cat.h"
#include "client/lib/job_file.h"
#include "client/lib/sweep_file.h"
#include "proto/job_file/yaml_writer.h"
#include "tests/fuzz/fuzz_target.h"

namespace tandem {
namespace {

constexpr char kJob[] = R"(name: shapes
dataset:
  name: fashion-mnist
  augmentation: [{flip: {}}, {translate: {max_pixels: 4}}]
model:
  input: {shape: [1, 28, 28]}
  layers:
    - conv2d: {filters: 20, kernel: [5, 5], activation: relu}
    - max_pool2d: {size: [2, 2]}
    - residual: {layers: [{dense: {units: 5}}]}
training:
  loss: {softmax_cross_entropy: {label_smoothing: 0.1}}
  optimizer: {momentum: {learning_rate: 1e-1, momentum: .9}}
  global_batch_size: 128
  epochs: 3
replicas: {count: 2, worker_load: [1, 0.5]}
)";
constexpr char kJson[] =
    R"({"name": "a", "training": {"seed": "18446744073709551615", "epochs": 3, "metrics": ["METRIC_ACCURACY"]}})";
constexpr char kText[] = R"(name: "a" training { epochs: 3 loss { mse {} } } replicas { count: 2 })";
constexpr char kSweep[] = R"(base: {name: a}
grid:
  - field: training.optimizer.sgd.learning_rate
    values: [0.1, 0.01]
max_running: 2
)";

}  // namespace

std::vector<std::string> Seeds() {
  return {absl::StrCat("y", kJob), absl::StrCat("d", kJson), absl::StrCat("t", kText),
          absl::StrCat("s", kSweep)};
}

}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tandem::client::JobFileFormat;
  if (size == 0) return 0;
  const std::string content(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 's') {
    (void)tandem::client::ParseSweepFile(content, "sweep.yaml");
    return 0;
  }
  const JobFileFormat format = data[0] == 't'   ? JobFileFormat::kTextProto
                               : data[0] == 'y' ? JobFileFormat::kYaml
                                                : JobFileFormat::kDetect;
  const auto job = tandem::client::ParseJobFile(content, "job", format);
  if (!job.ok()) return 0;
  // What was read can be written, and is then read as the same.
  const std::string yaml = tandem::ToYaml(job->spec);
  const auto again = tandem::client::ParseJobFile(yaml, "job.yaml", JobFileFormat::kYaml);
  if (!again.ok() || again->spec.SerializeAsString() != job->spec.SerializeAsString()) __builtin_trap();
  return 0;
}
