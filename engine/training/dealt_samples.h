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

// The replicas' shares of a job's samples, by their loads, and the resulting lengths. Thread-safe.
struct DealtSamples {
  // `loads` has a number above 0 for each replica. `spec` has its defaults. Epochs count from `begin`.
  // `classes` has the training samples of each class if the job balances samples; null otherwise.
  DealtSamples(const v1::JobSpec& spec, const DatasetInfo& data, std::vector<double> loads,
               const TrainingState& begin = {}, std::shared_ptr<const ClassSamples> classes = nullptr);

  const std::vector<double> loads;
  const std::unique_ptr<Sampler> train;
  const std::unique_ptr<Sampler> validation;  // Null without validation samples.
  const TrainingLength length;
  const AveragingPolicy averaging;
};

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_DEALT_SAMPLES_H_
