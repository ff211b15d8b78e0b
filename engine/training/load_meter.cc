#include "engine/training/load_meter.h"

#include <algorithm>
#include <cmath>

#include "engine/data/dealing.h"
#include "engine/training/replica_spec.h"

namespace tandem {
namespace {

constexpr double kGrain = 20;

}  // namespace

std::optional<double> LoadMeter::Measure(int64_t step, ReplicaSpeed* speed) const {
  const int64_t steps = step + 1 - first_step_;
  if (steps == kWarmUpSteps) *speed = {};
  if (steps != kWarmUpSteps + kMeasuredSteps) return std::nullopt;
  return speed->seconds > 0 ? static_cast<double>(speed->samples) / speed->seconds : 0;
}

v1::WorkerLoads LoadMeter::Loads(const std::vector<double>& speeds, int64_t step, int64_t batch) const {
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  std::vector<double> loads;
  for (const double speed : speeds) {
    const double load = fastest > 0 ? std::round(kGrain * speed / fastest) / kGrain : 1;
    loads.push_back(std::max(kLeastMeasuredLoad, load));
  }
  const std::vector<int64_t> shares = DealSamples(batch, loads);
  if (std::find(shares.begin(), shares.end(), 0) != shares.end()) loads.assign(loads.size(), 1.0);
  v1::WorkerLoads result;
  result.set_step(step);
  for (size_t rank = 0; rank < loads.size(); ++rank) {
    v1::ReplicaLoad* replica = result.add_replicas();
    replica->set_rank(static_cast<int>(rank));
    replica->set_device(devices_[rank]);
    replica->set_load(loads[rank]);
    replica->set_samples_per_second(speeds[rank]);
  }
  return result;
}

}  // namespace tandem
