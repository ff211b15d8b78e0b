#ifndef TANDEM_ENGINE_TRAINING_DEALT_SAMPLES_H_
#define TANDEM_ENGINE_TRAINING_DEALT_SAMPLES_H_

#include <memory>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/sampler.h"
#include "engine/training/averaging_policy.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// How the samples of a job are dealt to its replicas by their loads, and what follows from that. Thread-safe.
struct DealtSamples {
  // `loads` are one a replica, above 0. `spec` has its defaults. Epochs are counted from where `begin` stood.
  DealtSamples(const v1::JobSpec& spec, const DatasetInfo& data, std::vector<double> loads,
               const TrainingState& begin = {});

  const std::vector<double> loads;
  const std::unique_ptr<Sampler> train;
  const std::unique_ptr<Sampler> validation;  // Null where there are no samples for it.
  const TrainingLength length;
  const AveragingPolicy averaging;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_DEALT_SAMPLES_H_
