#ifndef TANDEM_ENGINE_TRAINING_MEASUREMENT_H_
#define TANDEM_ENGINE_TRAINING_MEASUREMENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/metrics/evaluator.h"

namespace tandem {

// The measurements of a replica since the last call.
struct Measurement {
  std::vector<double> sums;  // In the order of the meter.
  int64_t samples = 0;
  double data_wait_seconds = 0;
  double reduce_seconds = 0;
  // With a scaled loss: the scale at the end, and the number of skipped steps.
  double loss_scale = 0;
  int64_t skipped_steps = 0;
  std::shared_ptr<Evaluator> evaluator = nullptr;  // Of a validation with metrics that need it, else null.

  void Add(const Measurement& more) {
    sums.resize(std::max(sums.size(), more.sums.size()), 0);
    for (size_t i = 0; i < more.sums.size(); ++i) sums[i] += more.sums[i];
    samples += more.samples;
    data_wait_seconds += more.data_wait_seconds;
    reduce_seconds += more.reduce_seconds;
    loss_scale = more.loss_scale;
    skipped_steps += more.skipped_steps;
    if (more.evaluator == nullptr) return;
    if (evaluator == nullptr) {
      evaluator = std::make_shared<Evaluator>(*more.evaluator);
    } else {
      evaluator->Merge(*more.evaluator);
    }
  }
};

// Returns the sum over the replicas, added in the order of ranks. Do not use its loss_scale and
// skipped_steps: see LossScaleOf and SkippedStepsOf.
inline Measurement TotalOf(const std::vector<Measurement>& replicas) {
  Measurement total;
  for (const Measurement& measurement : replicas) total.Add(measurement);
  return total;
}

// Returns the smallest scale. Replicas that take their own steps have different scales.
inline double LossScaleOf(const std::vector<Measurement>& replicas) {
  double least = replicas.empty() ? 0 : replicas[0].loss_scale;
  for (const Measurement& measurement : replicas) least = std::min(least, measurement.loss_scale);
  return least;
}

// Returns the largest number of skipped steps of a replica.
inline int64_t SkippedStepsOf(const std::vector<Measurement>& replicas) {
  int64_t most = 0;
  for (const Measurement& measurement : replicas) most = std::max(most, measurement.skipped_steps);
  return most;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MEASUREMENT_H_
