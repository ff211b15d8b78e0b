#ifndef TANDEM_ENGINE_TRAINING_PARAMETER_TRACKER_H_
#define TANDEM_ENGINE_TRAINING_PARAMETER_TRACKER_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/checkpoint/safetensors_writer.h"
#include "tandem/v1/event.pb.h"

namespace tandem {

// Compares a network's parameters with those of the epoch before. Thread-compatible.
class ParameterTracker {
 public:
  // The most parameters in a report.
  static constexpr size_t kMostParameters = 1000;

  // Takes the parameters, float32 or float64, before the first steps.
  explicit ParameterTracker(std::vector<NamedTensor> parameters) : last_(std::move(parameters)) {}

  // Takes the same parameters after an epoch, in the same order. Returns their statistics without epoch and
  // step.
  v1::ParameterReport Compare(std::vector<NamedTensor> parameters);

 private:
  std::vector<NamedTensor> last_;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_PARAMETER_TRACKER_H_
