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

// Computes the means, over the samples of an epoch, of the batch statistics of batch normalisation. Each
// replica sums up its own batches. Write turns the sums of all replicas into means. A batch is the set of
// samples by which a layer normalises in training: a replica's share of a global batch, or a part of it. With
// batch_norm.sync it is the whole batch. Each batch counts by its samples. Thread-compatible.
class PopulationStatistics {
 public:
  // All arguments must outlive this object. `spec` has its defaults.
  PopulationStatistics(const v1::JobSpec* spec, const DatasetInfo* data, Device* device, Variables* variables)
      : spec_(*spec), data_(*data), device_(*device), variables_(*variables) {}

  // Compiles the graphs for a global batch in which the replica has `share`, unless a batch of the same size
  // is compiled.
  absl::Status Compile(const StepShape& share);
  // Drops the compiled graphs.
  void Drop();
  // Returns the bytes of the compiled graphs on the device.
  int64_t bytes() const;

  // Returns the first inputs of the part of a share that begins with sample `first`, from 0, as loaders give
  // them.
  using InputsOf = absl::FunctionRef<std::vector<const void*>(int64_t first)>;
  // Sums up the statistics of the share of a global batch of `batch_samples` samples, with the current
  // parameters. Overwrites the running statistics of the variables. Random numbers depend on `step`.
  absl::Status Add(int64_t batch_samples, int64_t step, InputsOf inputs_of, Communicator* communicator);

  // Returns the number of samples since the last call, followed by their sums.
  std::vector<double> TakeSums();
  // Writes the means of all replicas' sums, in the order of ranks, into the running statistics.
  absl::Status Write(absl::Span<const std::vector<double>> sums);

 private:
  struct Part {
    int64_t samples = 0;
    Executable* executable = nullptr;
  };
  // Adds the current running statistics, which are those of a single batch.
  absl::Status AddRunning(int64_t samples);

  const v1::JobSpec& spec_;
  const DatasetInfo& data_;
  Device& device_;
  Variables& variables_;
  // The statistics to take, without those of frozen layers.
  std::vector<Statistic> statistics_;
  // The parts of a share, by the samples of the whole batch. Empty if the replica has no share.
  std::map<int64_t, std::vector<Part>> shares_;
  // Executables of all parts, without repetition.
  std::vector<std::unique_ptr<Executable>> executables_;
  int64_t samples_ = 0;
  std::vector<double> sums_;  // Sums of statistic times samples, for all statistics in order.
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_POPULATION_STATISTICS_H_
