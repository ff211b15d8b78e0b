#ifndef TANDEM_ENGINE_TRAINING_MEASUREMENT_H_
#define TANDEM_ENGINE_TRAINING_MEASUREMENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/metrics/evaluator.h"

namespace tandem {

// What a replica measured since it last said so.
struct Measurement {
  std::vector<double> sums;  // As a meter's.
  int64_t samples = 0;
  double data_wait_seconds = 0;
  double reduce_seconds = 0;
  // Where the loss is scaled: by what at the end, and the steps that were left out.
  double loss_scale = 0;
  int64_t skipped_steps = 0;
  std::shared_ptr<Evaluator> evaluator = nullptr;  // Of a validation whose metrics need one; otherwise null.

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

// The sum over the replicas, added in the order of ranks. What it has of the loss's scale and of
// skipped steps is of no use: see below.
inline Measurement TotalOf(const std::vector<Measurement>& replicas) {
  Measurement total;
  for (const Measurement& measurement : replicas) total.Add(measurement);
  return total;
}

// Replicas that take steps of their own have a scale each: the least of them.
inline double LossScaleOf(const std::vector<Measurement>& replicas) {
  double least = replicas.empty() ? 0 : replicas[0].loss_scale;
  for (const Measurement& measurement : replicas) least = std::min(least, measurement.loss_scale);
  return least;
}

// Of the replica that left out most.
inline int64_t SkippedStepsOf(const std::vector<Measurement>& replicas) {
  int64_t most = 0;
  for (const Measurement& measurement : replicas) most = std::max(most, measurement.skipped_steps);
  return most;
}

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MEASUREMENT_H_
