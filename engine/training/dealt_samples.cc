#include "engine/training/dealt_samples.h"

#include <utility>

namespace tandem {
namespace {

std::unique_ptr<Sampler> TrainingSampler(const v1::Training& training, const DatasetInfo& data,
                                         const std::vector<double>& loads,
                                         std::shared_ptr<const ClassSamples> classes) {
  return std::make_unique<Sampler>(Sampler::Options{.samples = data.train_samples,
                                                    .batch = training.global_batch_size(),
                                                    .loads = loads,
                                                    .shuffle = training.shuffle(),
                                                    .shard_ends = data.shard_ends,
                                                    .shuffle_buffer = data.shuffle_buffer,
                                                    .classes = std::move(classes),
                                                    .seed = training.seed(),
                                                    .drop_last = training.drop_last()});
}

std::unique_ptr<Sampler> ValidationSampler(const v1::Training& training, const DatasetInfo& data,
                                           const std::vector<double>& loads) {
  if (data.validation_samples == 0) return nullptr;
  return std::make_unique<Sampler>(Sampler::Options{.samples = data.validation_samples,
                                                    .batch = training.validation_batch_size(),
                                                    .loads = loads,
                                                    .shuffle = false,
                                                    .seed = 0});
}

}  // namespace

DealtSamples::DealtSamples(const v1::JobSpec& spec, const DatasetInfo& data, std::vector<double> by,
                           const TrainingState& begin, std::shared_ptr<const ClassSamples> classes)
    : loads(std::move(by)),
      train(TrainingSampler(spec.training(), data, loads, std::move(classes))),
      validation(ValidationSampler(spec.training(), data, loads)),
      length(TrainingLength::Of(spec.training(), train->steps_per_epoch(),
                                EpochShift(begin, train->steps_per_epoch()))),
      averaging(spec.replicas(), length, train.get(), loads) {}

}  // namespace tandem
