#ifndef TANDEM_ENGINE_TRAINING_NOTICES_H_
#define TANDEM_ENGINE_TRAINING_NOTICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/layers/layer_kind.h"
#include "engine/training/training_length.h"
#include "engine/training/training_state.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Each function returns a sentence for people about a training, or "" if there is nothing to say.

// About parameters that do not begin with their initializers.
std::string WeightsNotice(const v1::InitialWeights& weights, size_t tensors);
// About weights that were trained on other data, if the normalization is computed from this job's data.
std::string NormalizationNotice(const v1::DatasetSpec& dataset);
// About weights of a model file that has another normalization than this job's data. The samples are no
// tokens, and `of_model` has means and deviations.
std::string NormalizationNotice(const v1::Normalization& of_model, const ResolvedNormalization& own);
// About a replica that takes more memory than planned.
std::string MemoryNotice(int64_t bytes, int64_t planned_bytes);
// About the compression of gradients, if replicas reduce together and the job asks for it. `parameters` are
// all of the network.
std::string CompressionNotice(const v1::Replicas& replicas, const std::vector<Parameter>& parameters);
// About a learning rate that the number of replicas changed. `first_rate` is the rate of the first step.
std::string ScalingNotice(const v1::Schedule& schedule, int replicas, double first_rate);

// About samples that stay on the host although the job runs on GPUs and does not ask for it. `planned` says
// whether the plan has them on the GPU. `no_memory` names the part that did not fit on a GPU, or is empty.
std::string DataNotice(const v1::JobSpec& spec, const DatasetInfo& data, bool planned,
                       const std::string& no_memory);

// About a last layer whose outputs the loss does not take: a softmax or a sigmoid that the loss computes
// itself, or no log_softmax for a loss of logarithms of probabilities. The layers have names.
std::string OutputNotice(const v1::Model& model, const v1::Loss& loss);

// About a convolutional network whose samples look like [height, width, channels].
std::string LayoutNotice(const v1::Model& model);

// About classes without a training sample, if dataset.train_limit is given or if they have validation
// samples. `train` and `validation` are the counts by class; `validation` is empty without validation.
std::string UntrainedClassesNotice(const v1::DatasetSpec& dataset, const DatasetInfo& info,
                                   const std::vector<int64_t>& train, const std::vector<int64_t>& validation);
// About classes with training samples and without a validation sample. Counts as above.
std::string UnvalidatedClassesNotice(const DatasetInfo& info, const std::vector<int64_t>& train,
                                     const std::vector<int64_t>& validation);

// About a training that continues from `begin` and has results that cannot be compared with the earlier
// results. `validates` says whether it validates, `other_data` whether on other data.
std::string ResultsNotice(const TrainingState& begin, const v1::Training& training, bool validates,
                          bool other_data);

// About data files at these fields that changed since the checkpoint of `step`.
std::string ChangedDataNotice(int64_t step, const std::vector<std::string>& fields);

// About a training that continues from `begin` with a different number of steps per epoch.
std::string EpochsNotice(const TrainingState& begin, const TrainingLength& length);

// About a batch with more samples than the data have for training. Each epoch then has one smaller step.
std::string BatchNotice(int64_t global_batch_size, int64_t train_samples);

// Says that the statistics of batch normalisation are now taken from this number of training samples.
std::string StatisticsNotice(int64_t samples);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_NOTICES_H_
