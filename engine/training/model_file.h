#ifndef TANDEM_ENGINE_TRAINING_MODEL_FILE_H_
#define TANDEM_ENGINE_TRAINING_MODEL_FILE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/env.h"
#include "engine/checkpoint/safetensors_writer.h"
#include "engine/data/data_names.h"
#include "engine/data/dataset.h"
#include "engine/data/normalization.h"
#include "engine/tensor/shape.h"
#include "tandem/v1/dataset.pb.h"
#include "tandem/v1/event.pb.h"
#include "tandem/v1/job.pb.h"

namespace tandem {

// What a model file says of the samples that the model was trained on, so that others can be prepared
// alike: by its metadata "samples" ("bytes", "floats" or "tokens"), "normalization" (a v1::Normalization as
// JSON), "class_names", "feature_names" and "target_names" (lists as JSON), "image_resize" (the name of a
// v1::ImageResize), and of a table "delimiter", "table_columns" and "feature_positions" (numbers, separated
// by commas).
struct TrainedOn {
  // How the training table was read.
  struct Table {
    char delimiter = ',';
    int64_t columns = 0;
    std::vector<int64_t> feature_positions = {};  // From 0, in the order of the sample's numbers.
  };

  SampleType sample_type = SampleType::kBytes;
  ResolvedNormalization normalization;
  std::vector<std::string> class_names;  // In the order of the labels; may be empty.
  // Of the columns of a table, in the order of the sample's numbers; may be empty.
  std::vector<std::string> feature_names = {};
  // The same of the target's numbers.
  std::vector<std::string> target_names = {};
  std::optional<v1::ImageResize> resize = std::nullopt;  // Of images that were brought to one size.
  std::optional<Table> table = std::nullopt;
};

// The names by which other data are matched to the model.
DataNames NamesOf(const TrainedOn& trained_on);

// How a data set, which has its source, brings images to one size; nothing where it does not.
std::optional<v1::ImageResize> ResizeOf(const v1::DatasetSpec& dataset);

// Writes a model as safetensors (temporary file, fsync, rename): `tensors`, and as metadata the job that
// trained it, `trained_on`, and where it is kept for it, the result that it had ("best_result", a
// v1::BestResult as JSON). `spec` has its defaults, and its data set as it was submitted: a model travels,
// and does not say where the data lay on this machine.
absl::Status WriteModel(Env* env, const std::string& path, const v1::JobSpec& spec,
                        absl::Span<const NamedTensor> tensors, const TrainedOn& trained_on,
                        const std::optional<v1::BestResult>& best = std::nullopt);

// Whether the metadata of a model's file says that it was kept for this result.
bool IsModelOf(const std::map<std::string, std::string>& metadata, const v1::BestResult& best);

// The names by which the model of a file knows its data: all that its metadata has. Nothing is matched if the
// file is not of a job's model.
absl::StatusOr<DataNames> NamesInModel(const std::map<std::string, std::string>& metadata);

// What the metadata of the file of a job's model says; `sample` is the shape of the model's samples.
// DATA_LOSS where that cannot be read.
absl::StatusOr<TrainedOn> ReadTrainedOn(const std::map<std::string, std::string>& metadata,
                                        const Shape& sample);

}  // namespace tandem

#endif  // TANDEM_ENGINE_TRAINING_MODEL_FILE_H_
