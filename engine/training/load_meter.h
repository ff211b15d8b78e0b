#ifndef TANDEM_ENGINE_TRAINING_LOAD_METER_H_
#define TANDEM_ENGINE_TRAINING_LOAD_METER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/v1/event.pb.h"

namespace tandem {

// What a replica has taken in training, and in how many seconds of its own: waiting for data and for the
// others does not count.
struct ReplicaSpeed {
  int64_t samples = 0;
  double seconds = 0;
};

// How fast replicas are, as their first steps tell, and the loads that follow from it: the first few steps
// warm caches up and do not count. One for all replicas of a process. Thread-safe: immutable.
class LoadMeter {
 public:
  // `devices` are names in the order of ranks; the first step is `first_step`, from 0 over all epochs.
  LoadMeter(std::vector<std::string> devices, int64_t first_step)
      : devices_(std::move(devices)), first_step_(first_step) {}

  // Each replica calls this after each step with its own speed, which begins anew when measuring does. Once,
  // when it has been measured, it gets its samples a second.
  std::optional<double> Measure(int64_t step, ReplicaSpeed* speed) const;

  // Steps until it has measured.
  static constexpr int64_t kSteps = 13;

  // The loads that follow from all replicas' samples a second, by rank: in proportion to their speeds, 1 for
  // the fastest, at least kLeastMeasuredLoad, in steps of a twentieth, so that devices that are alike get the
  // same. All 1 where otherwise one would get nothing of a batch of `batch` samples. `step` is the next one,
  // from 0.
  v1::WorkerLoads Loads(const std::vector<double>& speeds, int64_t step, int64_t batch) const;

 private:
  static constexpr int64_t kWarmUpSteps = 3;
  static constexpr int64_t kMeasuredSteps = kSteps - kWarmUpSteps;

  const std::vector<std::string> devices_;
  const int64_t first_step_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_LOAD_METER_H_
