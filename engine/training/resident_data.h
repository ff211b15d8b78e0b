#ifndef TANDEM_ENGINE_TRAINING_RESIDENT_DATA_H_
#define TANDEM_ENGINE_TRAINING_RESIDENT_DATA_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/backend/variables.h"
#include "engine/data/dataset.h"
#include "engine/graph/graph.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// Samples that are on a device as bytes. Step graphs gather each batch there and augment its images. For each
// step the host sends the indices of the samples and their random numbers. The batches equal a loader's
// batches to the bit.

// The inputs that replace samples and targets in these graphs: the indices, int32 [samples], and, if training
// samples are augmented, the random numbers, float64 [samples, numbers for each sample].
inline constexpr char kIndicesInput[] = "indices";
inline constexpr char kDrawnInput[] = "drawn";

// The prefix of the variables of samples and targets, as in "data/training_samples".
inline constexpr char kDataPrefix[] = "data/";

// A part of a data set.
enum class DataSplit : uint8_t { kTraining, kValidation };

// Returns why the samples of a job cannot be on a GPU, such as "the samples are tokens, which stay on the
// host". Returns "" if they can.
std::string WhyNotResident(const v1::JobSpec& spec, const DatasetInfo& data);

// Returns whether a job's training samples should be on its devices if they fit. This is true on GPUs, unless
// spec.gpu.data keeps them on the host or WhyNotResident has a reason. `spec` has its defaults.
bool WantsResidentData(const v1::JobSpec& spec, const DatasetInfo& data);

// Returns whether validation samples follow training samples to the device. Metrics that are computed on the
// host need the samples on the host.
bool ValidatesResident(const v1::JobSpec& spec);

// A batch that is gathered on the device.
struct ResidentBatch {
  ValueId samples = kNoValue;
  ValueId targets = kNoValue;
};

// Declares the inputs and variables of a batch of `samples` samples and gathers it. For training samples,
// also makes the changes of spec.dataset.augmentation.
absl::StatusOr<ResidentBatch> AddResidentBatch(const v1::JobSpec& spec, const DatasetInfo& data,
                                               DataSplit split, int64_t samples, Graph& graph);

// Returns whether a graph has declared the variables of a split.
bool HasData(const Variables& variables, DataSplit split);

// Writes the variables of a split. `dataset` is the split as in the source. DATA_LOSS if the samples cannot
// be read. RESOURCE_EXHAUSTED if the memory of the host or of the device is full.
absl::Status UploadData(const Dataset& dataset, const DatasetInfo& data, DataSplit split,
                        Variables* variables);

// Returns a data set from which a loader reads the graph's inputs in place of samples and targets. A sample
// is its index, and a target is the sample's random numbers. Without augmentation a target has no bytes.
std::unique_ptr<const Dataset> MakePicks(const v1::JobSpec& spec, const DatasetInfo& data, DataSplit split);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_RESIDENT_DATA_H_
