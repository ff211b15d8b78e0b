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

// Samples that lie on a device as the bytes that they are: its step graphs gather each batch there, and
// change its images. The host says, for each step, which samples and what their augmentation drew, so batches
// are those that a loader would have made, to the bit.

// Inputs of such graphs in place of samples and targets: int32 [samples] and, where training samples are
// changed at random, float64 [samples, numbers that are drawn for one].
inline constexpr char kIndicesInput[] = "indices";
inline constexpr char kDrawnInput[] = "drawn";

// What the variables that hold samples and their targets are named by: "data/training_samples".
inline constexpr char kDataPrefix[] = "data/";

// A part of a data set.
enum class DataSplit : uint8_t { kTraining, kValidation };

// Why samples of a job cannot lie on a GPU, for a message ("its samples are tokens"); empty where they can.
std::string WhyNotResident(const v1::JobSpec& spec, const DatasetInfo& data);

// Whether the training samples of a job lie on its devices, where these have memory for them: on GPUs, unless
// spec.gpu.data has them on the host or they cannot. `spec` has its defaults.
bool WantsResidentData(const v1::JobSpec& spec, const DatasetInfo& data);

// Whether those of validation do too, where training samples do: metrics that are computed on the host need
// them there.
bool ValidatesResident(const v1::JobSpec& spec);

// A batch as it is gathered on the device.
struct ResidentBatch {
  ValueId samples = kNoValue;
  ValueId targets = kNoValue;
};

// Declares the inputs and the variables of a batch of `samples` samples, gathers it
// and, of training samples, makes the changes of spec.dataset.augmentation.
absl::StatusOr<ResidentBatch> AddResidentBatch(const v1::JobSpec& spec, const DatasetInfo& data,
                                               DataSplit split, int64_t samples, Graph& graph);

// Whether a graph has declared the variables of a split.
bool HasData(const Variables& variables, DataSplit split);

// Writes them. `dataset` is the split as the source has it.
absl::Status UploadData(const Dataset& dataset, const DatasetInfo& data, DataSplit split,
                        Variables* variables);

// What a loader is to give in place of a split's samples and targets: the inputs of such graphs. Where
// nothing is drawn, its targets have no bytes.
std::unique_ptr<const Dataset> MakePicks(const v1::JobSpec& spec, const DatasetInfo& data, DataSplit split);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_RESIDENT_DATA_H_
