#include "engine/training/population_statistics.h"

#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/training/snapshot.h"

namespace tandem {

absl::Status PopulationStatistics::Compile(const StepShape& share) {
  const auto [found, is_new] = shares_.try_emplace(share.batch_samples);
  if (!is_new) return absl::OkStatus();
  std::vector<Part>& parts = found->second;
  for (const StepShape& shape : PartsOf(share, spec_.training().accumulation_steps())) {
    if (shape.is_early && !parts.empty() && parts.back().samples == shape.samples) {
      parts.push_back(parts.back());
      continue;
    }
    TANDEM_ASSIGN_OR_RETURN(const StepGraph step, BuildStatisticsGraph(spec_, data_, shape));
    statistics_.clear();
    for (const Statistic& statistic : step.statistics) {
      if (!statistic.frozen) statistics_.push_back(statistic);
    }
    if (step.graph.nodes().empty()) continue;
    TANDEM_ASSIGN_OR_RETURN(executables_.emplace_back(), device_.Compile(step.graph, &variables_));
    parts.push_back({.samples = shape.samples, .executable = executables_.back().get()});
  }
  return absl::OkStatus();
}

void PopulationStatistics::Drop() {
  shares_.clear();
  executables_.clear();
}

int64_t PopulationStatistics::bytes() const {
  int64_t bytes = 0;
  for (const auto& executable : executables_) bytes += executable->bytes();
  return bytes;
}

absl::Status PopulationStatistics::Add(int64_t batch_samples, int64_t step, InputsOf inputs_of,
                                       Communicator* communicator) {
  const std::vector<Part>& parts = shares_.at(batch_samples);
  int64_t first = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t step_of_part = StepOfPart(step, i, parts.size(), first);
    std::vector<const void*> inputs;
    if (parts[i].samples > 0) inputs = inputs_of(first);
    inputs.push_back(&step_of_part);
    TANDEM_RETURN_IF_ERROR(parts[i].executable->Run(inputs, communicator));
    TANDEM_RETURN_IF_ERROR(AddRunning(parts[i].samples));
    first += parts[i].samples;
  }
  return absl::OkStatus();
}

absl::Status PopulationStatistics::AddRunning(int64_t samples) {
  if (samples == 0) return absl::OkStatus();
  samples_ += samples;
  size_t at = 0;
  for (const Statistic& statistic : statistics_) {
    TANDEM_ASSIGN_OR_RETURN(const Tensor value, variables_.Read(statistic.name));
    const Tensor wide = value.CastTo(DType::kFloat64);
    const absl::Span<const double> numbers = wide.data<double>();
    if (sums_.size() < at + numbers.size()) sums_.resize(at + numbers.size(), 0);
    for (const double number : numbers) sums_[at++] += static_cast<double>(samples) * number;
  }
  return absl::OkStatus();
}

std::vector<double> PopulationStatistics::TakeSums() {
  std::vector<double> sums = {static_cast<double>(std::exchange(samples_, 0))};
  sums.insert(sums.end(), sums_.begin(), sums_.end());
  sums_.clear();
  return sums;
}

absl::Status PopulationStatistics::Write(absl::Span<const std::vector<double>> sums) {
  std::vector<double> total;
  for (const std::vector<double>& of_replica : sums) {
    total.resize(std::max(total.size(), of_replica.size()), 0);
    for (size_t i = 0; i < of_replica.size(); ++i) total[i] += of_replica[i];
  }
  size_t at = 1;
  for (const Statistic& statistic : statistics_) {
    Tensor mean(DType::kFloat64, statistic.shape);
    for (double& number : mean.data<double>()) number = total[at++] / total[0];
    TANDEM_RETURN_IF_ERROR(variables_.Write(statistic.name, mean));
    // The statistics belong to the averaged weights, so they are also the moving average.
    const std::string average = AverageName(statistic.name);
    if (variables_.kind(average).ok()) TANDEM_RETURN_IF_ERROR(variables_.Write(average, mean));
  }
  return absl::OkStatus();
}

}  // namespace tandem
