#ifndef TANDEM_ENGINE_TRAINING_NOTICES_H_
#define TANDEM_ENGINE_TRAINING_NOTICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/training/step_schedule.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// What a person should know of a training, in a sentence; empty where there is nothing to say.

// Of parameters that do not begin by their initializers.
std::string WeightsNotice(const v1::InitialWeights& weights, size_t tensors);
// Of loaded weights, if the normalization is computed from this job's data.
std::string NormalizationNotice(const v1::DatasetSpec& dataset);
// Of a replica that takes more memory than was planned.
std::string MemoryNotice(int64_t bytes, int64_t planned_bytes);
// Of a learning rate that the number of replicas has changed; `first_rate` is the first step's.
std::string ScalingNotice(const v1::Schedule& schedule, int replicas, double first_rate);

// Of samples that stay on the host though the job is on GPUs and does not ask for that. `planned`: whether
// the plan has them on the GPU; `no_memory` says what a GPU had too little memory for, or is empty.
std::string DataNotice(const v1::JobSpec& spec, const DatasetInfo& data, bool planned,
                       const std::string& no_memory);

// Of a network of convolutions whose samples look like [height, width, channels].
std::string LayoutNotice(const v1::Model& model);

// Of training samples that are all of one class, of those that dataset.train_limit leaves: `counts` are by
// class.
std::string OneClassNotice(const v1::DatasetSpec& dataset, const std::vector<int64_t>& counts);

// Of a training that goes on from where `begin` stood, and whose results cannot be compared with those
// before: `validates` says whether it validates, and `other_data` whether on other data.
std::string ResultsNotice(const TrainingState& begin, const v1::Training& training, bool validates,
                          bool other_data);

// Of data whose files' contents at these fields changed since the checkpoint of `step`.
std::string ChangedDataNotice(int64_t step, const std::vector<std::string>& fields);

// Of a training that goes on from where `begin` stood, and whose epochs have other steps than those had.
std::string EpochsNotice(const TrainingState& begin, const TrainingLength& length);

// That the statistics of batch normalisation are taken now, from so many training samples.
std::string StatisticsNotice(int64_t samples);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_NOTICES_H_
