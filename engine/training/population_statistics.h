#ifndef TANDEM_ENGINE_TRAINING_POPULATION_STATISTICS_H_
#define TANDEM_ENGINE_TRAINING_POPULATION_STATISTICS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/backend/device.h"
#include "engine/data/dataset.h"
#include "engine/layers/layer_kind.h"
#include "engine/training/step_graph.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// The means, over all training samples, of the statistics that batches have in batch normalisation: what one
// replica adds to them, and what comes of what all replicas have added. A batch is what a layer normalises by
// in training: a replica's share of a global batch, or a part of it; with batch_norm.sync the whole batch.
// Each counts by its samples. Thread-compatible.
class PopulationStatistics {
 public:
  // All of them outlive it. `spec` has its defaults.
  PopulationStatistics(const v1::JobSpec* spec, const DatasetInfo* data, Device* device, Variables* variables)
      : spec_(*spec), data_(*data), device_(*device), variables_(*variables) {}

  // Compiles what a global batch takes of which the replica has `share`, where that has not been done for one
  // of as many samples.
  absl::Status Compile(const StepShape& share);
  // Forgets what was compiled.
  void Drop();
  // Of what was compiled, on the device.
  int64_t bytes() const;

  // The first inputs of the part of a share that begins with sample `first`, from 0, as loaders give them.
  using InputsOf = absl::FunctionRef<std::vector<const void*>(int64_t first)>;
  // Takes the statistics of the share of a global batch of `batch_samples` samples, with the parameters as
  // they are, and adds them up. The running statistics of the variables are overwritten. `step` is what
  // random numbers follow from.
  absl::Status Add(int64_t batch_samples, int64_t step, InputsOf inputs_of, Communicator* communicator);

  // The number of samples since the last call, then their sums.
  std::vector<double> TakeSums();
  // Makes the means of what all replicas have summed up, in the order of ranks, the running statistics.
  absl::Status Write(absl::Span<const std::vector<double>> sums);

 private:
  struct Part {
    int64_t samples = 0;
    Executable* executable = nullptr;
  };
  // Adds what the running statistics are now, those of a batch.
  absl::Status AddRunning(int64_t samples);

  const v1::JobSpec& spec_;
  const DatasetInfo& data_;
  Device& device_;
  Variables& variables_;
  // Those that are to be taken: not those of frozen layers.
  std::vector<Statistic> statistics_;
  // Of a share, by the samples of the whole batch; none where the replica has no part in it.
  std::map<int64_t, std::vector<Part>> shares_;
  // What runs them, each once.
  std::vector<std::unique_ptr<Executable>> executables_;
  int64_t samples_ = 0;
  std::vector<double> sums_;  // Of the statistics, one behind the other, each times its samples.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_POPULATION_STATISTICS_H_
