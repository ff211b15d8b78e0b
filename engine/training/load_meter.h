#ifndef TANDEM_ENGINE_TRAINING_LOAD_METER_H_
#define TANDEM_ENGINE_TRAINING_LOAD_METER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/v1/event.pb.h"

namespace tandem {

// The samples that a replica trained on, and its own time for them. Waits for data and for other replicas do
// not count.
struct ReplicaSpeed {
  int64_t samples = 0;
  double seconds = 0;
};

// Measures the speed of replicas in their first steps, and derives their loads. The first few steps warm up
// caches and do not count. All replicas of a process share a meter. Thread-safe: immutable.
class LoadMeter {
 public:
  // `devices` are names in the order of ranks. `first_step` counts from 0 over all epochs.
  LoadMeter(std::vector<std::string> devices, int64_t first_step)
      : devices_(std::move(devices)), first_step_(first_step) {}

  // Each replica calls this after each step with its own speed. Resets `speed` when measuring begins. After
  // the last measured step it returns the replica's samples per second, and nothing otherwise.
  std::optional<double> Measure(int64_t step, ReplicaSpeed* speed) const;

  // The number of steps until the result.
  static constexpr int64_t kSteps = 13;

  // Returns the loads for the samples per second of all replicas, by rank. Loads are proportional to speed:
  // the fastest has 1, the slowest at least kLeastMeasuredLoad. They are multiples of 0.05, so equal devices
  // get equal loads. All loads are 1 if otherwise a replica would get no sample of a batch of `batch`
  // samples. `step` is the next step, from 0.
  v1::WorkerLoads Loads(const std::vector<double>& speeds, int64_t step, int64_t batch) const;

 private:
  static constexpr int64_t kWarmUpSteps = 3;
  static constexpr int64_t kMeasuredSteps = kSteps - kWarmUpSteps;

  const std::vector<std::string> devices_;
  const int64_t first_step_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_LOAD_METER_H_
